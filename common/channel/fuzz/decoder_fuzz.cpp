// An input is a stream as a peer would send it. Held for every input:
// - the decoder's events do not depend on how the stream is cut;
// - what follows the first five bytes, taken as a control payload, is accepted or refused as the
//   oracle says, and encodes to the bytes that the oracle writes; decoding those gives the same
//   message;
// - taken as the payload of END, the same.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/channel/decoder.h"
#include "common/channel/encoder.h"
#include "common/channel/fuzz/oracle.h"
#include "common/channel/sha256.h"

using namespace cordon::channel;

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

std::span<const std::byte> bytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}
std::string_view textOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Outcome {
  std::optional<Message> message;
  std::string bulk;
  std::optional<DecodeError> error;
  Sha256 offending{};
  std::size_t consumed = 0;
  bool operator==(const Outcome&) const = default;
};

// nextStep() says how many bytes to feed at once.
template <class NextStep>
Outcome decode(std::string_view stream, NextStep&& nextStep) {
  constexpr std::uint64_t CAP = 1 << 16;
  Outcome outcome;
  Decoder decoder(CAP);
  auto all = bytesOf(stream);
  while (!all.empty()) {
    auto input = all.first(std::min<std::size_t>(nextStep(), all.size()));
    all = all.subspan(input.size());
    for (;;) {
      const auto event = decoder.next(input);
      if (std::holds_alternative<Decoder::NeedMore>(event)) {
        require(input.empty(), "NeedMore leaves input");
        break;
      }
      if (const auto* control = std::get_if<Decoder::Control>(&event)) {
        require(!outcome.message, "Control once");
        outcome.message = *control->message;
      } else if (const auto* bulk = std::get_if<Decoder::Bulk>(&event)) {
        outcome.bulk += textOf(bulk->bytes);
        require(!bulk->bytes.empty() && outcome.bulk.size() <= CAP, "bulk within the cap");
      } else if (const auto* error = std::get_if<DecodeError>(&event)) {
        outcome.error = *error;
        outcome.offending = decoder.offendingFrame();
        return outcome;
      } else {
        require(outcome.message && *decoder.message() == *outcome.message, "Done follows Control");
        require(static_cast<std::uint64_t>(outcome.message->dataSize().value_or(0)) ==
                    outcome.bulk.size(),
                "bulk is as declared");
        require(decoder.bulkDigest() == sha256Of(std::string_view(outcome.bulk)), "digest");
        outcome.consumed = stream.size() - all.size() - input.size();
        return outcome;
      }
    }
  }
  outcome.error = decoder.finish();
  return outcome;
}

void checkCuts(std::string_view stream) {
  const Outcome whole = decode(stream, [&] { return stream.size(); });
  require(decode(stream, [] { return std::size_t{1}; }) == whole, "one byte at a time");
  std::uint32_t random = 2463534242u;
  require(decode(stream,
                 [&] {
                   random ^= random << 13;
                   random ^= random >> 17;
                   random ^= random << 5;
                   return std::size_t{1} + random % 19;
                 }) == whole,
          "cut anywhere");
}

std::string frame(std::uint8_t type, std::string_view payload) {
  auto header = dataHeader(payload.size());
  header.back() = std::byte{type};
  return std::string(textOf(header)).append(payload);
}

void checkControl(std::string_view payload) {
  const auto expected = fuzz::judgeControl(payload);
  const auto decoded = decodeControl(bytesOf(payload));
  const auto* message = std::get_if<Message>(&decoded);
  require((message != nullptr) == expected.has_value(),
          "decoder and oracle agree on a control payload");

  const std::string stream = frame(FRAME_CONTROL, payload);
  const Outcome outcome = decode(stream, [&] { return stream.size(); });
  if (message == nullptr) {
    require(outcome.error == DecodeError::INVALID_MESSAGE && !outcome.message,
            "a refused payload ends its frame");
    return;
  }
  require(outcome.error == DecodeError::BULK_OVERRUN || outcome.message == *message,
          "payload and frame agree");

  const auto encoded = encodeControl(*message);
  if (expected->size() > MAX_FRAME_PAYLOAD) {
    require(encoded == decltype(encoded){EncodeError::CONTROL_TOO_LARGE},
            "defaults may overfill a frame");
    return;
  }
  require(std::holds_alternative<std::string>(encoded), "what was read can be written");
  require(std::get<std::string>(encoded) == frame(FRAME_CONTROL, *expected),
          "encoder and oracle agree");
  const auto again = decodeControl(bytesOf(*expected));
  require(again == decoded, "reading what was written gives the same message");
}

void checkEnd(std::string_view payload) {
  static const std::string HEAD = [] {
    Message message{.id = {}, .body = FileData{.size = 3, .dataSize = 3}};
    return std::get<std::string>(encodeControl(message)) + frame(FRAME_DATA, "abc");
  }();
  static const std::string GOOD =
      R"({"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","size":3})";
  const auto expected = fuzz::judgeEnd(payload);
  const std::string stream = HEAD + frame(FRAME_END, payload);
  const Outcome outcome = decode(stream, [&] { return stream.size(); });
  if (!expected) {
    require(outcome.error == DecodeError::INVALID_MESSAGE,
            "decoder and oracle agree on an END payload");
  } else if (*expected == GOOD) {
    require(!outcome.error, "a good END ends the message");
  } else {
    require(outcome.error == DecodeError::BULK_MISMATCH, "a lying END is a mismatch");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view stream(reinterpret_cast<const char*>(data), size);
  checkCuts(stream);
  if (size >= FRAME_HEADER_SIZE && size <= FRAME_HEADER_SIZE + MAX_FRAME_PAYLOAD) {
    const std::string_view payload = stream.substr(FRAME_HEADER_SIZE);
    if (data[4] == FRAME_END) {
      checkEnd(payload);
    } else {
      checkControl(payload);
    }
  }
  return 0;
}
