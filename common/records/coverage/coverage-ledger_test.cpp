// What records say together: properties, and bounds. Single rules stand in tests/data/coverage.
#include "common/records/coverage/coverage-ledger.h"

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/records/coverage/testing/brute-force.h"
#include "common/records/coverage/testing/json.h"

namespace cordon::records {
namespace {

using Records = std::vector<Watermark>;
using MaybeWindow = std::optional<Window>;

Watermark mark(std::int64_t seq, Window window, std::string_view source = "edr") {
  return {.source = std::string(source),
          .epoch = 1,
          .seq = seq,
          .window = window,
          .events = 0,
          .bytes = 0,
          .dropped = 0,
          .backlog = 0,
          .aliveSinceMs = -1000};
}

// Schedules of one source over some 30 ms. Most steps are honest; `faults` of 100 are not.
class Schedules {
 public:
  explicit Schedules(std::uint32_t seed) : random(seed) {}

  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(bound));
  }

  Records next(int faults) {
    Records records;
    Watermark at = mark(1, {below(4), 0});
    const std::int64_t count = 1 + below(7);
    for (std::int64_t i = 0; i < count; ++i) {
      at.window.toMs = at.window.fromMs + below(6);
      at.events = at.window.fromMs == at.window.toMs ? 0 : below(3);
      records.push_back(at);
      if (below(100) < faults) spoil(records.back(), at);
      at.window.fromMs = at.window.toMs;
      ++at.seq;
    }
    if (below(3) == 0) records.back().final = true;
    return records;
  }

  MaybeWindow window() {
    if (below(3) == 0) return std::nullopt;
    const std::int64_t from = below(25) - 4;
    return Window{from, from + 1 + below(20)};
  }

 private:
  // Something in `record`, or in all that comes after it.
  void spoil(Watermark& record, Watermark& after) {
    switch (below(12)) {
      case 0:
        record.dropped = 1 + below(3);
        break;
      case 1:
        record.backlog = 1;
        break;
      case 2:
        record.window.toMs -= below(8);
        break;
      case 3:
        record.window.fromMs -= below(5);
        break;
      case 4:
        record.seq += below(4) - 1;
        break;
      case 5:
        record.aliveSinceMs = below(30);
        break;
      case 6:
        record.epoch += below(3) - 1;
        break;
      case 7:
        record.events = 1;
        break;
      case 8:
        record.final = true;
        break;
      case 9:  // restart
        after.epoch += 1 + below(2);
        after.seq = below(2);
        after.aliveSinceMs = after.window.toMs + below(4) - 1;
        break;
      case 10:  // hole, or the clock set back
        after.window.toMs += below(16) - 8;
        break;
      default:
        after.seq += below(3);
    }
  }

  std::mt19937 random;
};

std::string show(const Records& records, const MaybeWindow& asked) {
  std::string out;
  for (const Watermark& r : records) {
    out += "\n  epoch " + std::to_string(r.epoch) + " seq " + std::to_string(r.seq) + " [" +
           std::to_string(r.window.fromMs) + "," + std::to_string(r.window.toMs) + ") dropped " +
           std::to_string(r.dropped) + " alive " + std::to_string(r.aliveSinceMs) +
           (r.final ? " final" : "");
  }
  if (asked)
    out += "\n  asked " + std::to_string(asked->fromMs) + "," + std::to_string(asked->toMs);
  return out;
}

CoverageReport expectedOf(const Records& records, const MaybeWindow& asked) {
  auto brute = testing::judgeByMillisecond(records, asked);
  brute.source.source = "edr";
  CoverageReport report;
  report.status = Status::OK;
  report.answer = brute.answer;
  report.findings = brute.findings;
  report.sources.push_back(std::move(brute.source));
  return report;
}

TEST(Coverage, AnswersAsEachMillisecondDoes) {
  Schedules schedules(1);
  std::array<int, 3> seen{};
  for (int i = 0; i < 60'000; ++i) {
    const Records records = schedules.next(i % 3 == 0 ? 40 : 15);
    const MaybeWindow asked = schedules.window();
    const CoverageReport report = judgeCoverage(records, asked);
    ++seen.at(static_cast<std::size_t>(report.answer));
    ASSERT_EQ(testing::jsonOf(report), testing::jsonOf(expectedOf(records, asked)))
        << show(records, asked);
  }
  for (const int count : seen) EXPECT_GT(count, 3'000);
}

TEST(Coverage, OfAllRecordsIsThatOfTheirSpan) {
  Schedules schedules(2);
  for (int i = 0; i < 10'000; ++i) {
    Records records = schedules.next(25);
    Window span = records.front().window;
    for (const Watermark& record : records) {
      span.fromMs = std::min(span.fromMs, record.window.fromMs);
      span.toMs = std::max(span.toMs, record.window.toMs);
    }
    const CoverageReport whole = judgeCoverage(records, std::nullopt);
    if (span.fromMs >= span.toMs || whole.findings.has(Finding::INVERTED_WINDOW)) continue;
    ASSERT_EQ(testing::jsonOf(judgeCoverage(records, span)), testing::jsonOf(whole))
        << show(records, span);
  }
}

TEST(Coverage, CompleteIsCompleteInEveryPart) {
  Schedules schedules(3);
  int complete = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Records records = schedules.next(10);
    const MaybeWindow asked = schedules.window();
    if (!asked || judgeCoverage(records, asked).answer != Coverage::COMPLETE) continue;
    ++complete;
    for (std::int64_t from = asked->fromMs; from < asked->toMs; ++from) {
      for (std::int64_t to = from + 1; to <= asked->toMs; ++to) {
        ASSERT_EQ(judgeCoverage(records, Window{from, to}).answer, Coverage::COMPLETE)
            << show(records, asked) << " " << from << "," << to;
      }
    }
  }
  EXPECT_GT(complete, 500);
}

TEST(Coverage, ALostRecordLeavesNothingComplete) {
  Schedules schedules(4);
  int tried = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Records records = schedules.next(10);
    const MaybeWindow asked = schedules.window();
    if (!asked || judgeCoverage(records, asked).answer != Coverage::COMPLETE) continue;
    for (std::size_t at = 0; at < records.size(); ++at) {
      const Window& window = records[at].window;
      if (std::max(window.fromMs, asked->fromMs) >= std::min(window.toMs, asked->toMs)) continue;
      Records fewer = records;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at));
      const CoverageReport report = judgeCoverage(fewer, asked);
      ASSERT_NE(report.answer, Coverage::COMPLETE) << show(fewer, asked);
      ++tried;
    }
  }
  EXPECT_GT(tried, 1'000);
}

TEST(Coverage, OtherOrderIsNeverBetter) {
  Schedules schedules(5);
  std::mt19937 random(5);
  for (int i = 0; i < 20'000; ++i) {
    const Records records = schedules.next(15);
    const MaybeWindow asked = schedules.window();
    const CoverageReport report = judgeCoverage(records, asked);
    if (report.answer == Coverage::CONTRADICTORY) continue;
    Records shuffled = records;
    std::ranges::shuffle(shuffled, random);
    ASSERT_GE(judgeCoverage(shuffled, asked).answer, report.answer) << show(shuffled, asked);
  }
}

TEST(Coverage, SourcesDoNotTouchEachOther) {
  Schedules schedules(6);
  for (int i = 0; i < 5'000; ++i) {
    std::array<Records, 2> each{schedules.next(20), schedules.next(20)};
    for (Watermark& record : each[1]) record.source = "ids";
    Records mixed;
    std::array<std::size_t, 2> at{};
    while (at[0] < each[0].size() || at[1] < each[1].size()) {
      auto which = static_cast<std::size_t>(schedules.below(2));
      if (at.at(which) == each.at(which).size()) which = 1 - which;
      mixed.push_back(each.at(which)[at.at(which)++]);
    }
    const MaybeWindow asked = schedules.window();
    const CoverageReport report = judgeCoverage(mixed, asked);
    std::array<CoverageReport, 2> alone{judgeCoverage(each[0], asked),
                                        judgeCoverage(each[1], asked)};
    ASSERT_EQ(report.sources.size(), 2u);
    ASSERT_EQ(report.answer, std::max(alone[0].answer, alone[1].answer));
    const std::size_t first = mixed.front().source == "edr" ? 0 : 1;
    CoverageReport joined = alone.at(first);
    joined.answer = report.answer;
    joined.findings.add(alone.at(1 - first).findings);
    joined.sources.push_back(alone.at(1 - first).sources[0]);
    ASSERT_EQ(testing::jsonOf(report), testing::jsonOf(joined));
  }
}

TEST(Coverage, MayBeAskedBetweenRecords) {
  Schedules schedules(7);
  for (int i = 0; i < 2'000; ++i) {
    const Records records = schedules.next(25);
    CoverageLedger ledger;
    for (std::size_t count = 1; count <= records.size(); ++count) {
      ASSERT_EQ(ledger.add(records[count - 1]), Reason::NONE);
      const MaybeWindow asked = schedules.window();
      ASSERT_EQ(testing::jsonOf(ledger.answer(asked)),
                testing::jsonOf(judgeCoverage(std::span(records).first(count), asked)));
    }
  }
}

TEST(Coverage, OfNothingIsEmptyAndIncomplete) {
  for (const MaybeWindow& asked : {MaybeWindow{}, MaybeWindow{Window{0, 10}}}) {
    const CoverageReport report = CoverageLedger().answer(asked);
    EXPECT_EQ(report.status, Status::EMPTY);
    EXPECT_EQ(report.answer, Coverage::INCOMPLETE);
    EXPECT_TRUE(report.sources.empty());
  }
}

TEST(Coverage, TakesSoManySourcesAndNoMore) {
  Records records;
  for (std::size_t i = 0; i < MAX_SOURCES; ++i) {
    const auto from = static_cast<std::int64_t>(i);
    records.push_back(mark(1, {from, from + 1}, "s" + std::to_string(i)));
  }
  const CoverageReport full = judgeCoverage(records, std::nullopt);
  EXPECT_EQ(full.answer, Coverage::COMPLETE);
  ASSERT_EQ(full.sources.size(), MAX_SOURCES);
  EXPECT_EQ(full.sources[1023].source, "s1023");

  CoverageLedger ledger;
  for (const Watermark& record : records) ASSERT_EQ(ledger.add(record), Reason::NONE);
  EXPECT_EQ(ledger.add(mark(1, {0, 1}, "another")), Reason::TOO_MANY_SOURCES);
  EXPECT_EQ(ledger.answer(std::nullopt).sources.size(), MAX_SOURCES);
  EXPECT_EQ(ledger.add(mark(2, {0, 1}, "s7")), Reason::NONE);

  records.push_back(mark(1, {0, 1}, "another"));
  const CoverageReport refused = judgeCoverage(records, std::nullopt);
  EXPECT_EQ(refused.status, Status::REFUSED);
  EXPECT_EQ(refused.reason, Reason::TOO_MANY_SOURCES);
  EXPECT_EQ(refused.answer, Coverage::CONTRADICTORY);
  EXPECT_TRUE(refused.sources.empty());
}

// Records of 1 ms with a hole of 1 ms before each but the first.
Records holes(std::int64_t count, std::string_view source) {
  Records records;
  for (std::int64_t i = 0; i <= count; ++i)
    records.push_back(mark(i + 1, {2 * i, 2 * i + 1}, source));
  return records;
}

TEST(Coverage, GapsOfAllSourcesStopAtOneBound) {
  constexpr auto BOUND = static_cast<std::int64_t>(MAX_GAPS);
  const CoverageReport full = judgeCoverage(holes(BOUND, "a"), std::nullopt);
  ASSERT_EQ(full.sources[0].gaps.size(), MAX_GAPS);
  EXPECT_FALSE(full.truncated);
  EXPECT_EQ(full.sources[0].gaps.back().window, (Window{2 * BOUND - 1, 2 * BOUND}));

  const CoverageReport over = judgeCoverage(holes(BOUND + 1, "a"), std::nullopt);
  EXPECT_EQ(over.sources[0].gaps.size(), MAX_GAPS);
  EXPECT_TRUE(over.truncated);
  EXPECT_EQ(over.sources[0].gaps.back().window, (Window{2 * BOUND - 1, 2 * BOUND}));

  Records two = holes(BOUND - 1, "a");
  for (const Watermark& record : holes(2, "b")) two.push_back(record);
  const CoverageReport shared = judgeCoverage(two, std::nullopt);
  EXPECT_EQ(shared.sources[0].gaps.size(), MAX_GAPS - 1);
  EXPECT_EQ(shared.sources[1].gaps.size(), 1u);
  EXPECT_TRUE(shared.truncated);
  EXPECT_EQ(shared.sources[1].answer, Coverage::INCOMPLETE);
}

TEST(Coverage, AFullListStillTellsOfOtherGaps) {
  Records records = holes(static_cast<std::int64_t>(MAX_GAPS), "a");
  const CoverageReport report = judgeCoverage(records, Window{0, records.back().window.toMs + 1});
  EXPECT_TRUE(report.truncated);
  EXPECT_TRUE(report.findings.has(Finding::HOLE));
  EXPECT_TRUE(report.findings.has(Finding::BEYOND_RECORDS));
}

TEST(Coverage, DroppedStopsAtItsLargest) {
  constexpr std::int64_t MOST = (std::int64_t{1} << 53) - 1;
  CoverageLedger ledger;
  for (std::int64_t i = 0; i < 2048; ++i) {
    Watermark record = mark(i + 1, {i, i + 1});
    record.dropped = MOST;
    ASSERT_EQ(ledger.add(record), Reason::NONE);
  }
  EXPECT_EQ(ledger.answer(Window{0, 2047}).sources[0].dropped, 2047u * ((1ull << 53) - 1));
  EXPECT_EQ(ledger.answer(std::nullopt).sources[0].dropped, 2048u * ((1ull << 53) - 1));
  for (std::int64_t i = 2048; i < 2060; ++i) {
    Watermark record = mark(i + 1, {i, i + 1});
    record.dropped = MOST;
    ASSERT_EQ(ledger.add(record), Reason::NONE);
  }
  EXPECT_EQ(ledger.answer(std::nullopt).sources[0].dropped,
            std::numeric_limits<std::uint64_t>::max());
}

}  // namespace
}  // namespace cordon::records
