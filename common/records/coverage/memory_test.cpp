// The longest files there may be, in a process each, whose resident memory is held to a bound.
#include <cstdio>
#include <functional>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/records/coverage/coverage-reader.h"
#include "common/records/lines/limits.h"
#include "common/records/lines/testing/fixtures.h"
#include "common/records/verdicts/verdicts-reader.h"

namespace cordon::records {
namespace {

constexpr long MAX_COVERAGE_KIB = 128L << 10;
constexpr long MAX_VERDICTS_KIB = 32L << 10;

// Peak of a child that does `work`, which says whether all was as it should be.
long peakKib(const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  int status = 0;
  rusage usage{};
  EXPECT_EQ(wait4(child, &status, 0, &usage), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ::testing::Test::RecordProperty("peak-KiB", std::to_string(usage.ru_maxrss));
  std::printf("peak %ld KiB\n", usage.ru_maxrss);
  return usage.ru_maxrss;
}

// Every record leaves a hole before it and everything else that is kept of a record.
std::string worstMark(std::uint64_t i, std::uint64_t at) {
  return fmt::format(
      R"({{"v":1,"source":"s{}","epoch":{},"seq":2,"window_ms":[{},{}],"events":0,"bytes":0,)"
      R"("dropped":9007199254740991,"backlog":1,"alive_since_ms":9007199254740991}})"
      "\n",
      i % 7, i, 3 * at, 3 * at + 1);
}

bool readsWorst(const std::function<std::uint64_t(std::uint64_t)>& placeOf, Coverage answer) {
  CoverageReader reader;
  for (std::uint64_t i = 0; i < MAX_LINES; ++i)
    reader.feed(testing::bytesOf(worstMark(i, placeOf(i))));
  const CoverageReport report = reader.finish(std::nullopt);
  return report.status == Status::OK && report.answer == answer && report.sources.size() == 7 &&
         report.truncated && report.sources[0].gaps.size() == MAX_GAPS;
}

TEST(LongestFiles, OfWatermarksInOrder) {
  EXPECT_LE(
      peakKib([] { return readsWorst([](std::uint64_t i) { return i; }, Coverage::INCOMPLETE); }),
      MAX_COVERAGE_KIB);
}

TEST(LongestFiles, OfWatermarksFromTheLastToTheFirst) {
  EXPECT_LE(peakKib([] {
              return readsWorst([](std::uint64_t i) { return MAX_LINES - i; },
                                Coverage::INCOMPLETE);
            }),
            MAX_COVERAGE_KIB);
}

TEST(LongestFiles, OfVerdicts) {
  const auto lineOf = [](std::uint64_t seq) {
    return fmt::format(R"({{"v":1,"run":"00112233445566778899aabbccddeeff","seq":{},"check":"c{}",)"
                       R"("outcome":"pass","observed_ms":1,"tier":"T3","detail":"{:0>1000}"}})"
                       "\n",
                       seq, seq, seq);
  };
  EXPECT_LE(peakKib([&] {
              VerdictsReader reader;
              for (std::uint64_t seq = 1; seq <= MAX_LINES; ++seq)
                reader.feed(testing::bytesOf(lineOf(seq)));
              const VerdictsReport report = reader.finish();
              return report.green && report.records == MAX_LINES && report.truncated;
            }),
            MAX_VERDICTS_KIB);
}

TEST(LongestFiles, HaveSoManyLinesAndNoMore) {
  EXPECT_LE(peakKib([] {
              WatermarksReader reader([](const Watermark&) { return Reason::NONE; });
              const std::string line = worstMark(1, 1);
              for (std::uint64_t i = 0; i < MAX_LINES; ++i) reader.feed(testing::bytesOf(line));
              LinesEnd end = reader.end();
              if (end.status != Status::OK || end.records != MAX_LINES || end.tornTail)
                return false;
              // One more line is none until it ends.
              reader.feed(testing::bytesOf(line.substr(0, 5)));
              end = reader.end();
              if (end.status != Status::OK || !end.tornTail) return false;
              reader.feed(testing::bytesOf(line.substr(5)));
              end = reader.end();
              return end.status == Status::REFUSED && end.reason == Reason::TOO_MANY_LINES &&
                     end.line == MAX_LINES + 1;
            }),
            MAX_VERDICTS_KIB);
}

}  // namespace
}  // namespace cordon::records
