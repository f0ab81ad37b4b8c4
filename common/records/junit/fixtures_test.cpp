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
std::string readInPieces(std::string_view text, NextSize&& nextSize) {
  JunitReader reader;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, nextSize());
    reader.feed(std::as_bytes(std::span(piece)));
    text.remove_prefix(piece.size());
  }
  return everythingIn(reader.finish());
}

TEST_P(JunitFixtures, AreTheSameCutAtAnyByte) {
  const std::string& bytes = GetParam().bytes;
  const std::string whole = everythingIn(readWhole(bytes));
  const std::size_t step = std::max<std::size_t>(1, bytes.size() / 4096);
  for (std::size_t at = 0; at <= bytes.size(); at += step) {
    bool first = true;
    ASSERT_EQ(
        readInPieces(bytes,
                     [&] { return std::exchange(first, false) && at > 0 ? at : bytes.size() + 1; }),
        whole)
        << "cut at " << at;
  }
}

TEST_P(JunitFixtures, AreTheSameCutAtEachByte) {
  const std::string& bytes = GetParam().bytes;
  EXPECT_EQ(readInPieces(bytes, [] { return std::size_t{1}; }), everythingIn(readWhole(bytes)));
}

TEST_P(JunitFixtures, AreTheSameCutAtRandom) {
  const std::string& bytes = GetParam().bytes;
  const std::string whole = everythingIn(readWhole(bytes));
  for (unsigned seed = 0; seed < 8; ++seed) {
    std::minstd_rand random(seed + 1);
    ASSERT_EQ(readInPieces(bytes, [&] { return std::size_t{1} + random() % 97; }), whole)
        << "seed " << seed;
  }
}

// Small pieces and small tokens, so that a fixture takes several of them: the size of pieces may
// change how fast a document is read and nothing else.
TEST_P(JunitFixtures, AreTheSameInPiecesOfAnySize) {
  const std::string whole = everythingIn(readWhole(GetParam().bytes));
  for (const std::size_t size : {4, 5, 7, 16, 63, 64, 65, 1000}) {
    JunitLimits limits;
    limits.pieceBytes = size;
    ASSERT_EQ(everythingIn(readWhole(GetParam().bytes, limits)), whole) << "pieces of " << size;
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
