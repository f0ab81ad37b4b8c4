#include "common/records/coverage/watermarks.h"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "common/records/lines/testing/fixtures.h"

namespace cordon::records {
namespace {

using testing::bytesOf;

constexpr std::string_view FULL =
    R"({"v":1,"source":"edr","epoch":3,"seq":4,"window_ms":[-5,6],"events":7,"bytes":8,)"
    R"("dropped":9,"backlog":10,"alive_since_ms":-11,"final":true})"
    "\n";
constexpr std::string_view LEAST =
    R"({"v":1,"source":"","epoch":0,"seq":1,"window_ms":[0,0],"events":0,"bytes":0,)"
    R"("dropped":0,"backlog":0,"alive_since_ms":0})"
    "\n";

TEST(Watermarks, EveryFieldArrives) {
  std::vector<Watermark> taken;
  WatermarksReader reader([&](const Watermark& watermark) {
    taken.push_back(watermark);
    return Reason::NONE;
  });
  reader.feed(bytesOf(FULL));
  reader.feed(bytesOf(LEAST));
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].source, "edr");
  EXPECT_EQ(taken[0].epoch, 3);
  EXPECT_EQ(taken[0].seq, 4);
  EXPECT_EQ(taken[0].window, (Window{-5, 6}));
  EXPECT_EQ(taken[0].events, 7);
  EXPECT_EQ(taken[0].bytes, 8);
  EXPECT_EQ(taken[0].dropped, 9);
  EXPECT_EQ(taken[0].backlog, 10);
  EXPECT_EQ(taken[0].aliveSinceMs, -11);
  EXPECT_TRUE(taken[0].final);
  EXPECT_EQ(taken[1].source, "");
  EXPECT_EQ(taken[1].window, (Window{0, 0}));
  EXPECT_FALSE(taken[1].final);
  EXPECT_EQ(reader.end().records, 2u);
}

TEST(Watermarks, ATornTailMayBeCompletedLater) {
  int taken = 0;
  WatermarksReader reader([&](const Watermark&) {
    ++taken;
    return Reason::NONE;
  });
  reader.feed(bytesOf(LEAST.substr(0, 20)));
  EXPECT_EQ(reader.end().status, Status::EMPTY);
  EXPECT_TRUE(reader.end().tornTail);
  reader.feed(bytesOf(LEAST.substr(20)));
  EXPECT_EQ(reader.end().status, Status::OK);
  EXPECT_FALSE(reader.end().tornTail);
  EXPECT_EQ(taken, 1);
}

TEST(Watermarks, WhoTakesThemMayRefuse) {
  int taken = 0;
  WatermarksReader reader(
      [&](const Watermark&) { return ++taken == 2 ? Reason::TOO_MANY_SOURCES : Reason::NONE; });
  for (int i = 0; i < 4; ++i) reader.feed(bytesOf(LEAST));
  EXPECT_EQ(taken, 2);
  EXPECT_EQ(reader.end().status, Status::REFUSED);
  EXPECT_EQ(reader.end().reason, Reason::TOO_MANY_SOURCES);
  EXPECT_EQ(reader.end().line, 2u);
  EXPECT_EQ(reader.end().records, 1u);
}

}  // namespace
}  // namespace cordon::records
