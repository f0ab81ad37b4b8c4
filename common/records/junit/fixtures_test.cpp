// Reports as producers and attackers write them, each with exactly what is made of it; and that it
// does not matter how they are cut.
#include "common/records/junit/testing/fixtures.h"

#include <algorithm>
#include <random>
#include <span>
#include <utility>

#include <gmock/gmock.h>

namespace cordon::records::testing {
namespace {

class JunitFixtures : public ::testing::TestWithParam<JunitFixture> {};

TEST_P(JunitFixtures, AreReadAsExpected) {
  EXPECT_EQ(jsonOf(readWhole(GetParam().bytes)), GetParam().expected);
}

template <class NextSize>
JunitReport readInPieces(std::string_view text, NextSize&& nextSize) {
  JunitReader reader;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, nextSize());
    reader.feed(std::as_bytes(std::span(piece)));
    text.remove_prefix(piece.size());
  }
  return reader.finish();
}

JunitReport readCutAt(std::string_view text, std::size_t at) {
  JunitReader reader;
  reader.feed(std::as_bytes(std::span(text.substr(0, at))));
  reader.feed(std::as_bytes(std::span(text.substr(at))));
  return reader.finish();
}

TEST_P(JunitFixtures, AreTheSameCutAtAnyByte) {
  // Of the few that are long, a part of the places will do.
  constexpr std::size_t PLACES = 8192;
  const std::string& bytes = GetParam().bytes;
  const JunitReport whole = readWhole(bytes);
  const std::size_t step = bytes.size() <= PLACES ? 1 : bytes.size() / 256;
  for (std::size_t at = 0; at <= bytes.size(); at += step) {
    ASSERT_TRUE(readCutAt(bytes, at) == whole)
        << "cut at " << at << ": " << jsonOf(readCutAt(bytes, at));
  }
}

TEST_P(JunitFixtures, AreTheSameCutAtEachByte) {
  const std::string& bytes = GetParam().bytes;
  const auto cut = readInPieces(bytes, [] { return std::size_t{1}; });
  EXPECT_TRUE(cut == readWhole(bytes)) << jsonOf(cut);
}

TEST_P(JunitFixtures, AreTheSameCutAtRandom) {
  const std::string& bytes = GetParam().bytes;
  const JunitReport whole = readWhole(bytes);
  for (unsigned seed = 1; seed <= 8; ++seed) {
    std::minstd_rand random(seed);
    const auto cut = readInPieces(bytes, [&] { return std::size_t{1} + random() % 97; });
    ASSERT_TRUE(cut == whole) << "seed " << seed << ": " << jsonOf(cut);
  }
}

// Small pieces, so that a fixture takes several: their size may change how fast a document is read
// and nothing else.
TEST_P(JunitFixtures, AreTheSameInPiecesOfAnySize) {
  const JunitReport whole = readWhole(GetParam().bytes);
  for (const std::size_t size : {4u, 5u, 7u, 16u, 63u, 64u, 65u, 1000u}) {
    JunitLimits limits;
    limits.pieceBytes = size;
    const JunitReport report = readWhole(GetParam().bytes, limits);
    ASSERT_TRUE(report == whole) << "pieces of " << size << ": " << jsonOf(report);
  }
}

TEST_P(JunitFixtures, AddUp) {
  const JunitReport report = readWhole(GetParam().bytes);
  const JunitTotals& totals = report.totals;
  EXPECT_EQ(totals.cases, totals.passed + totals.failed + totals.errored + totals.skipped +
                              totals.flaky + totals.unknown);
}

std::string nameOfTest(const ::testing::TestParamInfo<JunitFixture>& info) {
  std::string name = info.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Data, JunitFixtures, ::testing::ValuesIn(junitFixtures()), nameOfTest);

TEST(JunitFixtureFolder, HoldsEnough) {
  EXPECT_GE(junitFixtures().size(), 60u);
}

}  // namespace
}  // namespace cordon::records::testing
