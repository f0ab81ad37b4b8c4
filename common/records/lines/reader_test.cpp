#include "common/records/lines/reader.h"

#include <array>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "common/records/lines/limits.h"
#include "common/records/lines/testing/fixtures.h"

namespace cordon::records {
namespace {

constexpr Field TABLE[] = {
    {.name = "v", .integer = isVersion},
};
constexpr std::string_view LINE = R"({"v":1})";

class Counter final : public LineSink {
 public:
  std::uint64_t begun = 0;
  std::uint64_t ended = 0;
  std::uint64_t refuseAt = 0;

  void* beginRecord() override {
    ++begun;
    return this;
  }
  Reason endRecord() override {
    return ++ended == refuseAt ? Reason::TOO_MANY_SOURCES : Reason::NONE;
  }
};

struct Reading {
  Counter counter;
  LinesReader reader{TABLE, counter};

  void feed(std::string_view text, std::size_t step = std::string_view::npos) {
    testing::feedInPieces(reader, text, [=] { return step; });
  }
  void expect(Status status, Reason reason, std::uint64_t line, std::uint64_t records,
              bool tornTail) const {
    const LinesEnd end = reader.end();
    EXPECT_EQ(nameOf(end.status), nameOf(status));
    EXPECT_EQ(nameOf(end.reason), nameOf(reason));
    EXPECT_EQ(end.line, line);
    EXPECT_EQ(end.records, records);
    EXPECT_EQ(end.tornTail, tornTail);
  }
};

std::string lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text.append(LINE).append("\n");
  return text;
}

TEST(Lines, NothingIsEmpty) {
  Reading reading;
  reading.expect(Status::EMPTY, Reason::NONE, 0, 0, false);
  reading.feed("");
  reading.expect(Status::EMPTY, Reason::NONE, 0, 0, false);
}

TEST(Lines, EndMayBeAskedAtAnyTime) {
  Reading reading;
  reading.feed(LINE);
  reading.expect(Status::EMPTY, Reason::NONE, 0, 0, true);
  reading.feed("\n");
  reading.expect(Status::OK, Reason::NONE, 0, 1, false);
  reading.feed(LINE.substr(0, 3));
  reading.expect(Status::OK, Reason::NONE, 0, 1, true);
  reading.feed(LINE.substr(3));
  reading.feed("\n\n");
  reading.expect(Status::UNPARSABLE, Reason::NOT_JSON, 3, 2, false);
}

TEST(Lines, NothingIsReadAfterABadLine) {
  Reading reading;
  reading.feed(lines(2) + "{}\nx\n" + lines(2));
  reading.feed(lines(1));
  reading.expect(Status::REFUSED, Reason::MISSING_KEY, 3, 2, false);
  EXPECT_EQ(reading.counter.begun, 3u);
  EXPECT_EQ(reading.counter.ended, 2u);
}

TEST(Lines, WhoTakesRecordsMayRefuse) {
  Reading reading;
  reading.counter.refuseAt = 2;
  reading.feed(lines(3));
  reading.expect(Status::REFUSED, Reason::TOO_MANY_SOURCES, 2, 1, false);
}

TEST(Lines, ALineMayHaveSoManyBytes) {
  std::string longest(LINE);
  longest.resize(MAX_LINE_BYTES, ' ');
  const std::string twice = longest + longest;
  for (const std::size_t step : {std::size_t{1} << 30, std::size_t{1}, std::size_t{4099},
                                 MAX_LINE_BYTES, MAX_LINE_BYTES + 1}) {
    Reading good;
    good.feed(longest + "\n", step);
    good.expect(Status::OK, Reason::NONE, 0, 1, false);
    Reading torn;
    torn.feed(longest, step);
    torn.expect(Status::EMPTY, Reason::NONE, 0, 0, true);
    Reading over;
    over.feed(longest + " \n", step);
    over.expect(Status::REFUSED, Reason::LINE_TOO_LONG, 1, 0, false);
    Reading endless;
    endless.feed(lines(1) + twice, step);
    endless.expect(Status::REFUSED, Reason::LINE_TOO_LONG, 2, 1, false);
    Reading malformed;
    malformed.feed("x" + twice, step);
    malformed.expect(Status::UNPARSABLE, Reason::NOT_JSON, 1, 0, false);
    Reading deep;
    deep.feed(std::string(MAX_LINE_BYTES + 1, '['), step);
    deep.expect(Status::UNPARSABLE, Reason::TOO_DEEP, 1, 0, false);
    // A character that the cap cuts in two.
    Reading halved;
    const std::string text = R"({"v)" + std::string(MAX_LINE_BYTES - 4, 'v');
    halved.feed(text + "\xc3\xa9\"}\n", step);
    halved.expect(Status::REFUSED, Reason::LINE_TOO_LONG, 1, 0, false);
  }
}

}  // namespace
}  // namespace cordon::records
