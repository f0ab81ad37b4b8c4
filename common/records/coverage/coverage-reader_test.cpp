// Whole files: tests/data/coverage.
#include "common/records/coverage/coverage-reader.h"

#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/records/coverage/testing/json.h"
#include "common/records/lines/testing/fixtures.h"

namespace cordon::records {
namespace {

CoverageReport readInPieces(const testing::Fixture& fixture,
                            const std::function<std::size_t()>& nextSize) {
  CoverageReader reader;
  testing::feedInPieces(reader, fixture.bytes, nextSize);
  return reader.finish(fixture.window);
}

CoverageReport read(const testing::Fixture& fixture) {
  return readInPieces(fixture, [&] { return fixture.bytes.size(); });
}

TEST(CoverageFiles, AreReadAsExpected) {
  const auto fixtures = testing::fixturesOf("coverage");
  EXPECT_GE(fixtures.size(), 50u);
  for (const auto& fixture : fixtures) {
    EXPECT_EQ(testing::jsonOf(read(fixture)), fixture.expected) << fixture.name;
  }
}

TEST(CoverageFiles, SplitAtAnyByteAreTheSame) {
  for (const auto& fixture : testing::fixturesOf("coverage")) {
    if (fixture.window) continue;  // the same file once more
    const CoverageReport whole = read(fixture);
    const auto expectSame = [&](const CoverageReport& report) {
      ASSERT_EQ(testing::jsonOf(report), testing::jsonOf(whole)) << fixture.name;
      ASSERT_EQ(report.line, whole.line) << fixture.name;
    };
    expectSame(readInPieces(fixture, [] { return 1; }));
    for (std::size_t cut = 1; cut < fixture.bytes.size(); ++cut) {
      bool isFirst = true;
      expectSame(readInPieces(
          fixture, [&] { return std::exchange(isFirst, false) ? cut : std::string::npos; }));
    }
  }
}

}  // namespace
}  // namespace cordon::records
