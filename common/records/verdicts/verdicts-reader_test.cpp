#include "common/records/verdicts/verdicts-reader.h"

#include <random>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/records/lines/testing/fixtures.h"

namespace cordon::records {
namespace {

constexpr std::string_view RUN = "00112233445566778899aabbccddeeff";

std::string jsonOf(const VerdictsReport& report) {
  return fmt::format(
      R"({{"status":{},"reason":{},"records":{},"outcomes":{{"pass":{},"fail":{},"error":{},"skip":{}}},)"
      R"("tamper":{},"green":{},"findings":{},"truncated":{}}})",
      testing::inQuotes(nameOf(report.status)), testing::inQuotes(nameOf(report.reason)),
      report.records, report.outcomes[0], report.outcomes[1], report.outcomes[2],
      report.outcomes[3], report.tamper, report.green, testing::listOf(report.findings),
      report.truncated);
}

// All of a report, its list too.
std::string wholeOf(const VerdictsReport& report) {
  std::string out = jsonOf(report) + fmt::format(" line {}", report.line);
  for (const auto byte : report.run) out += fmt::format(" {}", byte);
  for (const VerdictRecord& record : report.list) {
    out += fmt::format("\n{} {} {} {} {}", record.seq, testing::inQuotes(record.check),
                       testing::inQuotes(record.goal.value_or("-")),
                       static_cast<int>(record.outcome), record.observedMs);
    out += testing::inQuotes(record.detail.value_or("-"));
    if (record.proof) out += record.proof->kind + std::to_string(record.proof->sha256[31]);
  }
  return out;
}

VerdictsReport readInPieces(std::string_view text, const std::function<std::size_t()>& nextSize) {
  VerdictsReader reader;
  testing::feedInPieces(reader, text, nextSize);
  return reader.finish();
}

VerdictsReport read(std::string_view text) {
  return readInPieces(text, [&] { return text.size(); });
}

std::string record(std::uint64_t seq, std::string_view more = "",
                   std::string_view outcome = "pass") {
  return fmt::format(
      R"({{"v":1,"run":"{}","seq":{},"check":"c","outcome":"{}","observed_ms":5,"tier":"T3"{}}})"
      "\n",
      RUN, seq, outcome, more);
}

TEST(Verdicts, FixturesAreReadAsExpected) {
  const auto fixtures = testing::fixturesOf("verdicts");
  EXPECT_GE(fixtures.size(), 40u);
  for (const auto& fixture : fixtures) {
    EXPECT_EQ(jsonOf(read(fixture.bytes)), fixture.expected) << fixture.name;
  }
}

TEST(Verdicts, SplitAtAnyByteTheyAreTheSame) {
  std::mt19937 random(20261130);
  for (const auto& fixture : testing::fixturesOf("verdicts")) {
    const std::string whole = wholeOf(read(fixture.bytes));
    EXPECT_EQ(wholeOf(readInPieces(fixture.bytes, [] { return 1; })), whole) << fixture.name;
    if (fixture.bytes.size() < 1024) {
      for (std::size_t cut = 1; cut < fixture.bytes.size(); ++cut) {
        bool isFirst = true;
        const auto sizes = [&] { return std::exchange(isFirst, false) ? cut : std::string::npos; };
        ASSERT_EQ(wholeOf(readInPieces(fixture.bytes, sizes)), whole) << fixture.name << " " << cut;
      }
    } else {
      for (int i = 0; i < 20; ++i) {
        const auto sizes = [&] { return 1 + random() % 9000; };
        ASSERT_EQ(wholeOf(readInPieces(fixture.bytes, sizes)), whole) << fixture.name;
      }
    }
  }
}

TEST(Verdicts, EveryFieldArrives) {
  const std::string digest(63, '0');
  const auto report =
      read(record(1) + record(2,
                              R"(,"goal":"g","proof":{"sha256":")" + digest +
                                  R"(7","kind":"file-digest"},"detail":"a\u001b[0m\u0085\n\u00e9")",
                              "error"));
  ASSERT_EQ(report.status, Status::OK);
  EXPECT_EQ(report.run[1], 0x11);
  EXPECT_EQ(report.run[15], 0xff);
  ASSERT_EQ(report.list.size(), 2u);
  EXPECT_EQ(report.list[0].goal, std::nullopt);
  EXPECT_EQ(report.list[0].detail, std::nullopt);
  EXPECT_FALSE(report.list[0].proof.has_value());
  const VerdictRecord& second = report.list[1];
  EXPECT_EQ(second.seq, 2u);
  EXPECT_EQ(second.check, "c");
  EXPECT_EQ(second.goal, "g");
  EXPECT_EQ(second.outcome, VerdictOutcome::ERROR);
  EXPECT_EQ(second.observedMs, 5);
  EXPECT_EQ(second.detail, "a\x1b[0m\xc2\x85\n\xc3\xa9");
  ASSERT_TRUE(second.proof.has_value());
  EXPECT_EQ(second.proof->kind, "file-digest");
  EXPECT_EQ(second.proof->sha256[30], 0);
  EXPECT_EQ(second.proof->sha256[31], 7);
}

TEST(Verdicts, AListStopsAtItsBoundOfRecords) {
  std::string text;
  for (std::uint64_t seq = 1; seq <= MAX_LISTED_VERDICTS; ++seq) text += record(seq);
  const auto full = read(text);
  EXPECT_EQ(full.list.size(), MAX_LISTED_VERDICTS);
  EXPECT_FALSE(full.truncated);
  EXPECT_TRUE(full.green);
  const auto over = read(text + record(MAX_LISTED_VERDICTS + 1, "", "fail"));
  EXPECT_EQ(over.list.size(), MAX_LISTED_VERDICTS);
  EXPECT_TRUE(over.truncated);
  EXPECT_EQ(over.records, MAX_LISTED_VERDICTS + 1);
  EXPECT_EQ(over.outcomes[1], 1u);
  EXPECT_FALSE(over.green);
}

TEST(Verdicts, AListStopsAtItsBoundOfBytes) {
  // 16,383 of detail and 1 of check: 512 of them are 8 MiB.
  const std::string detail = R"(,"detail":")" + std::string(16383, 'd') + '"';
  std::string text;
  for (std::uint64_t seq = 1; seq <= 512; ++seq) text += record(seq, detail);
  const auto full = read(text);
  EXPECT_EQ(full.list.size(), 512u);
  EXPECT_FALSE(full.truncated);
  const auto over = read(text + record(513));
  EXPECT_EQ(over.list.size(), 512u);
  EXPECT_TRUE(over.truncated);
  EXPECT_TRUE(over.green);
}

TEST(Verdicts, NothingIsListedAfterTheFirstThatDoesNotFit) {
  const std::string detail = R"(,"detail":")" + std::string(16383, 'd') + '"';
  std::string text;
  for (std::uint64_t seq = 1; seq <= 511; ++seq) text += record(seq, detail);
  const auto report = read(text + record(512) + record(513, detail) + record(514));
  EXPECT_EQ(report.records, 514u);
  EXPECT_EQ(report.list.size(), 512u);
  EXPECT_EQ(report.list.back().seq, 512u);
  EXPECT_TRUE(report.truncated);
}

TEST(Verdicts, AVoidFileHasNothingInIt) {
  const auto report = read(record(2) + record(2) + "x\n");
  EXPECT_EQ(report.status, Status::UNPARSABLE);
  EXPECT_EQ(report.reason, Reason::NOT_JSON);
  EXPECT_EQ(report.line, 3u);
  EXPECT_EQ(report.records, 0u);
  EXPECT_TRUE(report.list.empty());
  EXPECT_TRUE(report.findings.empty());
  EXPECT_FALSE(report.tamper);
  EXPECT_FALSE(report.green);
}

}  // namespace
}  // namespace cordon::records
