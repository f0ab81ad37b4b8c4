#include "common/channel/encoder.h"

#include <string>

#include <gtest/gtest.h>

namespace cordon::channel {
namespace {

Id idOf(std::uint8_t byte) {
  Id id;
  id.bytes.fill(byte);
  return id;
}

Message messageOf(Body body) {
  return {idOf(0xa1), std::move(body)};
}

std::string controlOf(Body body) {
  return std::get<std::string>(encodeControl(messageOf(std::move(body)))).substr(FRAME_HEADER_SIZE);
}

void expectInvalid(Body body) {
  const auto result = encodeControl(messageOf(std::move(body)));
  ASSERT_TRUE(std::holds_alternative<EncodeError>(result)) << std::get<std::string>(result);
  EXPECT_EQ(std::get<EncodeError>(result), EncodeError::INVALID_MESSAGE);
}

TEST(Encoder, RefusesWhatADecoderWould) {
  expectInvalid(Exec{});
  expectInvalid(Exec{.cmd = {std::string("a\0b", 3)}});
  expectInvalid(Exec{.cmd = {"\xff"}});
  expectInvalid(Exec{.cmd = {"a"}, .env = {{"\xed\xa0\x80", ""}}});
  expectInvalid(Exec{.cmd = {"a"}, .env = {{"a", std::string(1, '\0')}}});
  expectInvalid(
      Exec{.cmd = {"a"},
           .budget = {.commandMs = MAX_COMMAND_MS + 1, .untimedBoundMs = MAX_WIRE_INTEGER}});
  expectInvalid(Exec{.cmd = {"a"}, .budget = {.commandMs = 11, .untimedBoundMs = 10}});
  expectInvalid(Exec{.cmd = {"a"}, .dataSize = -1});
  expectInvalid(ReadFile{});
  expectInvalid(ReadFile{.path = "a", .maxBytes = MAX_DECLARED_BULK + 1});
  expectInvalid(WriteFile{.path = "a", .mode = 010000});
  expectInvalid(Forward{.host = "a", .port = 65536});
  expectInvalid(Diag{.maxEntries = 0});
  expectInvalid(Pong{.daemon = std::string(MAX_DAEMON_LENGTH + 1, 'x')});
  expectInvalid(Pong{.daemon = "a", .protocol = 2});
  expectInvalid(ExecResult{.rc = std::int64_t{1} << 31});
  expectInvalid(ExecResult{.stdoutSize = 1, .stderrSize = 2, .dataSize = 2});
  expectInvalid(FileData{.size = 1});
  expectInvalid(DiagResult{.entries = {DiagEntry{}}});
  expectInvalid(Error{.errnoName = "enoent"});
  expectInvalid(Error{.errnoName = "E"});
  expectInvalid(Error{.errnoName = "ETIME"});
  expectInvalid(Error{.errnoName = "EIO", .partial = "x"});
  expectInvalid(Error{.errnoName = "ETIME", .layer = static_cast<BudgetLayer>(4)});
  expectInvalid(Realize{.grants = std::vector<std::string>(MAX_GRANTS + 1)});
}

TEST(Encoder, RefusesAControlPayloadOverTheCap) {
  const std::string frameOfOne = controlOf(Exec{.cmd = {"x"}});
  const std::size_t room = MAX_FRAME_PAYLOAD - frameOfOne.size() + 1;
  EXPECT_EQ(controlOf(Exec{.cmd = {std::string(room, 'x')}}).size(), MAX_FRAME_PAYLOAD);
  const auto over = encodeControl(messageOf(Exec{.cmd = {std::string(room + 1, 'x')}}));
  EXPECT_EQ(std::get<EncodeError>(over), EncodeError::CONTROL_TOO_LARGE);
}

TEST(Encoder, RefusesBulkThatIsNotDeclared) {
  const auto bulk = std::as_bytes(std::span(std::string_view("abc")));
  EXPECT_EQ(std::get<EncodeError>(encodeMessage(messageOf(Ok{}), bulk)),
            EncodeError::INVALID_MESSAGE);
  EXPECT_EQ(
      std::get<EncodeError>(encodeMessage(messageOf(WriteFile{.path = "a", .dataSize = 4}), bulk)),
      EncodeError::INVALID_MESSAGE);
}

TEST(Encoder, CountsCodePointsNotBytes) {
  std::string euros;
  for (std::size_t i = 0; i < MAX_DAEMON_LENGTH; ++i) euros += "\xe2\x82\xac";
  EXPECT_NE(controlOf(Pong{.daemon = euros}).find(euros), std::string::npos);
  expectInvalid(Pong{.daemon = euros + "a"});
}

TEST(Encoder, WritesMembersInOrderAndDefaultsAlways) {
  const std::string a = "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1";
  EXPECT_EQ(controlOf(Ping{}), R"({"id":")" + a + R"(","kind":"ping","v":3})");
  EXPECT_EQ(controlOf(Exec{.cmd = {"a"}}),
            R"({"budget":{"untimed_bound_ms":14400000},"cmd":["a"],"env":{},"id":")" + a +
                R"(","kind":"exec","v":3})");
  EXPECT_EQ(controlOf(StageReport{}), R"({"detail":"","guests":{},"id":")" + a +
                                          R"(","kind":"stage","stage":"fetch","v":3})");
  EXPECT_EQ(controlOf(Realize{}).substr(0, 24), R"({"bundle_digest":"000000)");
}

TEST(Encoder, SortsMapKeysByCodePoint) {
  // U+FF5E lies before U+1F600 by code point and behind it by UTF-16 unit.
  const std::string control = controlOf(
      Exec{.cmd = {"a"},
           .env = {{"\xf0\x9f\x98\x80", "3"}, {"\xef\xbd\x9e", "2"}, {"Z", "0"}, {"a", "1"}}});
  EXPECT_NE(
      control.find("{\"Z\":\"0\",\"a\":\"1\",\"\xef\xbd\x9e\":\"2\",\"\xf0\x9f\x98\x80\":\"3\"}"),
      std::string::npos)
      << control;
}

TEST(Encoder, EscapesExactlyWhatMustBe) {
  const std::string control = controlOf(
      Exec{.cmd = {"\"\\/\b\f\n\r\t\x01\x1f\x7f<&>\xe2\x80\xa8\xc3\xa9\xf0\x9f\x98\x80"}});
  EXPECT_NE(
      control.find("[\"\\\"\\\\/"
                   "\\b\\f\\n\\r\\t\\u0001\\u001f\x7f<&>\xe2\x80\xa8\xc3\xa9\xf0\x9f\x98\x80\"]"),
      std::string::npos)
      << control;
}

}  // namespace
}  // namespace cordon::channel
