#include "common/channel/decoder.h"

#include <string>

#include <gtest/gtest.h>

#include "common/channel/encoder.h"
#include "common/channel/sha256.h"

namespace cordon::channel {
namespace {

constexpr std::string_view ID = "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1";

std::span<const std::byte> bytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string frame(char type, std::string_view payload) {
  std::string out = {
      static_cast<char>(payload.size() >> 24), static_cast<char>(payload.size() >> 16),
      static_cast<char>(payload.size() >> 8), static_cast<char>(payload.size()), type};
  return out.append(payload);
}

std::string control(std::string_view members) {
  return frame('C', R"({"id":")" + std::string(ID) + R"(","v":3,)" + std::string(members) + "}");
}

std::string endOf(std::string_view bulk) {
  return frame('E', R"({"sha256":")" + toHex(sha256Of(bulk)) + R"(","size":)" +
                        std::to_string(bulk.size()) + "}");
}

std::string fileData(std::size_t size) {
  return control(R"("kind":"file_data","size":)" + std::to_string(size) + R"(,"data_size":)" +
                 std::to_string(size));
}

struct Outcome {
  std::optional<Message> message;
  std::string bulk;
  std::optional<DecodeError> error;  // of next(), else of finish()
  std::string rest;
  Sha256 offending{};
  bool operator==(const Outcome&) const = default;
};

Outcome decode(std::string_view stream, std::size_t step, std::uint64_t cap = DEFAULT_BULK_CAP) {
  Outcome outcome;
  Decoder decoder(cap);
  auto all = bytesOf(stream);
  while (true) {
    auto input = all.first(std::min(step, all.size()));
    all = all.subspan(input.size());
    bool needMore = false;
    while (!needMore) {
      const auto event = decoder.next(input);
      if (const auto* bulk = std::get_if<Decoder::Bulk>(&event)) {
        EXPECT_FALSE(bulk->bytes.empty());
        outcome.bulk.append(reinterpret_cast<const char*>(bulk->bytes.data()), bulk->bytes.size());
      } else if (const auto* error = std::get_if<DecodeError>(&event)) {
        outcome.error = *error;
        outcome.offending = decoder.offendingFrame();
        auto more = bytesOf("more");
        EXPECT_EQ(std::get<DecodeError>(decoder.next(more)), *error);
        EXPECT_EQ(decoder.finish(), *error);
        return outcome;
      } else if (std::holds_alternative<Decoder::Done>(event)) {
        EXPECT_EQ(decoder.finish(), std::nullopt);
        EXPECT_EQ(toHex(decoder.bulkDigest()), toHex(sha256Of(std::string_view(outcome.bulk))));
        outcome.rest.assign(reinterpret_cast<const char*>(input.data()), input.size());
        outcome.rest.append(reinterpret_cast<const char*>(all.data()), all.size());
        outcome.message = decoder.take();
        return outcome;
      } else if (const auto* read = std::get_if<Decoder::Control>(&event)) {
        EXPECT_EQ(read->message, decoder.message());
      } else {
        EXPECT_TRUE(input.empty());
        needMore = true;
      }
    }
    if (all.empty()) break;
  }
  outcome.error = decoder.finish();
  return outcome;
}

// The same outcome however the stream is cut.
Outcome decodeEachWay(std::string_view stream, std::uint64_t cap = DEFAULT_BULK_CAP) {
  Outcome whole = decode(stream, stream.size() + 1, cap);
  for (const std::size_t step : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7}}) {
    EXPECT_TRUE(decode(stream, step, cap) == whole) << "cut into steps of " << step;
  }
  return whole;
}

void expectError(std::string_view stream, DecodeError error, std::uint64_t cap = DEFAULT_BULK_CAP) {
  const Outcome outcome = decodeEachWay(stream, cap);
  ASSERT_TRUE(outcome.error) << testing::PrintToString(stream.substr(0, 200));
  EXPECT_EQ(name(*outcome.error), name(error)) << testing::PrintToString(stream.substr(0, 200));
}

void expectInvalid(std::string_view payload) {
  expectError(frame('C', payload), DecodeError::INVALID_MESSAGE);
}

TEST(Decoder, JudgesTheLengthBeforeTheType) {
  expectError({"\x00\x00\x80\x01Z", 5}, DecodeError::FRAME_TOO_LARGE);
  expectError({"\xff\xff\xff\xff"
               "C",
               5},
              DecodeError::FRAME_TOO_LARGE);
  expectError({"\x00\x00\x80\x00Z", 5}, DecodeError::PROTOCOL_VIOLATION);
  // No payload need have come.
  expectError({"\x00\x00\x00\x05"
               "D",
               5},
              DecodeError::PROTOCOL_VIOLATION);
  expectError({"\x00\x00\x00\x05"
               "E",
               5},
              DecodeError::PROTOCOL_VIOLATION);
}

TEST(Decoder, JudgesTheOrderOfFrames) {
  expectError(frame('D', "abc"), DecodeError::PROTOCOL_VIOLATION);
  expectError(endOf(""), DecodeError::PROTOCOL_VIOLATION);
  expectError(fileData(3) + fileData(3), DecodeError::PROTOCOL_VIOLATION);
  expectError(fileData(3) + frame('D', "abcd"), DecodeError::PROTOCOL_VIOLATION);
  expectError(fileData(3) + frame('D', "abc") + frame('D', "d"), DecodeError::PROTOCOL_VIOLATION);
}

TEST(Decoder, HoldsBulkAgainstDeclarationCapAndEnd) {
  expectError(fileData(11), DecodeError::BULK_OVERRUN, 10);
  expectError(fileData(3) + frame('D', "abcd"), DecodeError::BULK_OVERRUN, 3);
  expectError(fileData(3) + frame('D', "ab") + endOf("ab"), DecodeError::BULK_MISMATCH);
  expectError(fileData(3) + frame('D', "abc") + endOf("abcd"), DecodeError::BULK_MISMATCH);
  expectError(fileData(3) + frame('D', "abc") + endOf("abd"), DecodeError::BULK_MISMATCH);
  expectError(fileData(3) + frame('D', "abc") + frame('E', ""), DecodeError::INVALID_MESSAGE);
}

TEST(Decoder, BearsSixteenEmptyDataFramesAMessage) {
  std::string stream = fileData(3);
  for (int i = 0; i < 8; ++i) stream += frame('D', "");
  stream += frame('D', "abc");
  for (int i = 0; i < 8; ++i) stream += frame('D', "");
  EXPECT_EQ(decodeEachWay(stream + endOf("abc")).bulk, "abc");
  expectError(stream + frame('D', "") + endOf("abc"), DecodeError::INVALID_MESSAGE);
}

TEST(Decoder, TellsTruncationFromAClosedStream) {
  const std::string stream = fileData(3) + frame('D', "abc") + endOf("abc");
  expectError("", DecodeError::CLOSED);
  for (std::size_t cut = 1; cut < stream.size(); ++cut) {
    expectError(std::string_view(stream).substr(0, cut), DecodeError::TRUNCATED);
  }
  EXPECT_EQ(decodeEachWay(stream).error, std::nullopt);
}

TEST(Decoder, LeavesWhatFollowsTheMessage) {
  const Outcome outcome = decodeEachWay(control(R"("kind":"ok")") + "rest");
  EXPECT_TRUE(std::holds_alternative<Ok>(outcome.message.value().body));
  EXPECT_EQ(outcome.rest, "rest");
  EXPECT_EQ(decodeEachWay(fileData(0) + endOf("") + "rest").rest, "rest");
}

TEST(Decoder, HandsBulkOnWithoutCopy) {
  const std::string stream = fileData(3) + frame('D', "abc");
  Decoder decoder(DEFAULT_BULK_CAP);
  auto input = bytesOf(stream);
  ASSERT_TRUE(std::holds_alternative<Decoder::Control>(decoder.next(input)));
  const auto event = decoder.next(input);
  EXPECT_EQ(std::get<Decoder::Bulk>(event).bytes.data(), bytesOf(stream).last(3).data());
}

TEST(Decoder, DigestsTheOffendingFrame) {
  const std::string bad = frame('C', "{}");
  EXPECT_EQ(toHex(decodeEachWay(bad + "rest").offending), toHex(sha256Of(std::string_view(bad))));
  const std::string stray = frame('C', "{}");
  EXPECT_EQ(toHex(decodeEachWay(fileData(3) + frame('D', "a") + stray).offending),
            toHex(sha256Of(std::string_view(stray).substr(0, FRAME_HEADER_SIZE))));
  const std::string lie = endOf("abd");
  EXPECT_EQ(toHex(decodeEachWay(fileData(3) + frame('D', "abc") + lie).offending),
            toHex(sha256Of(std::string_view(lie))));
}

TEST(Decoder, RefusesWhatIsNotStrictJson) {
  const std::string ping = R"({"id":"a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1","kind":"ping","v":3})";
  ASSERT_EQ(decodeEachWay(frame('C', ping)).error, std::nullopt);
  expectInvalid("");
  expectInvalid("{}");
  expectInvalid("[" + ping + "]");
  expectInvalid("\xef\xbb\xbf" + ping);
  expectInvalid(ping + "x");
  expectInvalid(ping + ping);
  expectInvalid(ping + std::string(1, '\0'));
  expectInvalid(std::string(1, '\0') + ping);
  expectInvalid("/**/" + ping);
  EXPECT_EQ(decodeEachWay(frame('C', " \t\r\n" + ping + " \t\r\n")).error, std::nullopt);
}

TEST(Decoder, RefusesCoercionAndDoubles) {
  for (const std::string_view v : {"\"3\"", "3.0", "3e0", "30e-1", "-3", "03", "+3", "true", "null",
                                   "[3]", "{}", "4", "18446744073709551619", "NaN"}) {
    expectInvalid(R"({"id":"a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1","kind":"ping","v":)" +
                  std::string(v) + "}");
  }
  for (const std::string_view rc :
       {"-0", "0.0", "2147483648", "-2147483649", "18446744073709551616", "9223372036854775808",
        "-9223372036854775809", "1e1", "false"}) {
    expectError(
        control(R"("kind":"exec_result","stdout_size":0,"stderr_size":0,"rc":)" + std::string(rc)),
        DecodeError::INVALID_MESSAGE);
  }
  EXPECT_EQ(decodeEachWay(
                control(R"("kind":"exec_result","stdout_size":0,"stderr_size":0,"rc":-2147483648)"))
                .error,
            std::nullopt);
}

TEST(Decoder, RefusesDuplicatesNullsAndUnknownKeysAtAnyDepth) {
  expectError(control(R"("kind":"ping","kind":"ping")"), DecodeError::INVALID_MESSAGE);
  expectError(control(R"("kind":"ping","\u006bind":"ping")"), DecodeError::INVALID_MESSAGE);
  expectError(control(R"("kind":"ping","extra":1)"), DecodeError::INVALID_MESSAGE);
  expectError(control(R"("kind":"ping","data_size":0)"), DecodeError::INVALID_MESSAGE);
  expectError(control(R"("kind":"exec","cmd":["a"],"cwd":null)"), DecodeError::INVALID_MESSAGE);
  expectError(control(R"("kind":"exec","cmd":["a",null])"), DecodeError::INVALID_MESSAGE);
  expectError(control(R"("kind":"exec","cmd":["a"],"env":{"a":"1","\u0061":"1"})"),
              DecodeError::INVALID_MESSAGE);
  expectError(control(R"("kind":"exec","cmd":["a"],"budget":{"command_ms":1,"command_ms":1})"),
              DecodeError::INVALID_MESSAGE);
  expectError(control(R"("kind":"exec","cmd":["a"],"budget":{"x":1})"),
              DecodeError::INVALID_MESSAGE);
  EXPECT_EQ(decodeEachWay(control(R"("kind":"exec","cmd":["a"],"budget":{})")).error, std::nullopt);
}

TEST(Decoder, BoundsTheDepth) {
  for (const std::string_view open : {"[", R"({"a":)"}) {
    std::string deep;
    for (int i = 0; i < 6000; ++i) deep += open;
    expectError(control(R"("x":)" + deep), DecodeError::INVALID_MESSAGE);
    expectInvalid(deep);
  }
}

TEST(Decoder, RefusesNulAndIllFormedText) {
  for (const std::string_view text :
       {R"(\u0000)", R"(a\u0000b)", R"(\ud800)", R"(\udc00)", R"(\ud800\u0041)", "\xff", "\xc0\x80",
        "\xed\xa0\x80", "\xf4\x90\x80\x80", "\n", "\x1f", "\\x41"}) {
    expectError(control(R"("kind":"exec","cmd":[")" + std::string(text) + R"("])"),
                DecodeError::INVALID_MESSAGE);
    expectError(control(R"("kind":"exec","cmd":["a"],"env":{")" + std::string(text) + R"(":""})"),
                DecodeError::INVALID_MESSAGE);
  }
  const Outcome outcome = decodeEachWay(control(R"("kind":"exec","cmd":["\ud83d\ude00\u00e9\/"])"));
  EXPECT_EQ(std::get<Exec>(outcome.message.value().body).cmd.at(0), "\xf0\x9f\x98\x80\xc3\xa9/");
}

}  // namespace
}  // namespace cordon::channel
