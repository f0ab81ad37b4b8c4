#include <string>

#include <gtest/gtest.h>

#include "services/cli/read/human-view.h"
#include "services/cli/read/json-view.h"
#include "services/cli/read/words.h"

namespace cordon::cli {
namespace {

using records::Finding;
using records::Reason;
using records::Status;

records::JunitCase caseNamed(const std::string& name, records::CaseOutcome outcome) {
  records::JunitCase one;
  one.suite = {"outer", ""};
  one.className = "class";
  one.name = name;
  one.outcome = outcome;
  return one;
}

records::JunitReport failedReport() {
  records::JunitReport report;
  report.status = Status::OK;
  report.totals = {.cases = 2, .passed = 1, .failed = 1};
  report.claimsMismatch = true;
  report.findings.add(Finding::CLAIM_MISMATCH);
  report.findings.add(Finding::BAD_CLAIM);
  report.cases = {caseNamed("good", records::CaseOutcome::PASSED),
                  caseNamed("bad", records::CaseOutcome::FAILED)};
  report.cases[1].attempts = 3;
  return report;
}

TEST(JsonView, HasTheKeysOfJunitInOrder) {
  EXPECT_EQ(
      toJson(failedReport()),
      R"({"status":"ok","reason":"","totals":{"cases":2,"passed":1,"failed":1,"errored":0,)"
      R"("skipped":0,"flaky":0,"unknown":0},"green":false,"claims_mismatch":true,)"
      R"("findings":["bad-claim","claim-mismatch"],"truncated":false,"cases":[)"
      R"({"suite":["outer",""],"class":"class","name":"good","outcome":"passed","attempts":1},)"
      R"({"suite":["outer",""],"class":"class","name":"bad","outcome":"failed","attempts":3}]})"
      "\n");
}

TEST(JsonView, HasTheKeysOfVerdictsInOrder) {
  records::VerdictsReport report;
  report.status = Status::REFUSED;
  report.reason = Reason::UNKNOWN_KEY;
  report.records = 10;
  report.outcomes = {1, 2, 3, 4};
  report.tamper = true;
  EXPECT_EQ(toJson(report),
            R"({"status":"refused","reason":"unknown-key","records":10,)"
            R"("outcomes":{"pass":1,"fail":2,"error":3,"skip":4},"tamper":true,"green":false,)"
            R"("findings":[],"truncated":false})"
            "\n");
}

TEST(JsonView, HasTheKeysOfCoverageInOrder) {
  records::CoverageReport report;
  report.status = Status::OK;
  report.sources.push_back({.source = "edr",
                            .answer = records::Coverage::INCOMPLETE,
                            .gaps = {{{-5, 10}, Finding::HOLE}},
                            .dropped = UINT64_MAX,
                            .restarts = 1});
  report.findings.add(Finding::HOLE);
  EXPECT_EQ(toJson(report),
            R"({"status":"ok","reason":"","answer":"incomplete","sources":[{"source":"edr",)"
            R"("answer":"incomplete","gaps":[{"from_ms":-5,"to_ms":10,"why":"hole"}],)"
            R"("dropped":18446744073709551615,"restarts":1}],"findings":["hole"]})"
            "\n");
}

const char* const HOSTILE =
    "\u001b[2J\u007f\u0085\u009b\u061c\u200e\u200f\u202a\u202e\u2066\u2069"
    "\u2028\u2029\n\r\t\"\\<\U0001f642";

TEST(JsonView, IsAscii) {
  records::JunitReport report = failedReport();
  report.cases = {caseNamed(HOSTILE, records::CaseOutcome::FAILED)};
  const std::string json = toJson(report);
  for (std::size_t i = 0; i + 1 < json.size(); ++i) {
    EXPECT_TRUE(json[i] >= 0x20 && json[i] < 0x7f) << i;
  }
  EXPECT_EQ(json.back(), '\n');
  EXPECT_NE(
      json.find(R"("name":"\u001b[2J\u007f\u0085\u009b\u061c\u200e\u200f\u202a\u202e\u2066\u2069)"
                R"(\u2028\u2029\n\r\t\"\\<\ud83d\ude42")"),
      std::string::npos)
      << json;
}

TEST(HumanView, IsShortAndTellsTheWorstFirst) {
  EXPECT_EQ(
      toText("r.xml", failedReport(), {}),
      "r.xml: JUnit report: not green\n"
      "  totals    2 cases: 1 failed, 1 passed\n"
      "  claims    the report's own counts are not those of its cases\n"
      "  findings  bad-claim: a count that the report claims is no natural number\n"
      "            claim-mismatch: a count that the report claims differs from what is in it\n"
      "  failed    outer > class > bad  (3 attempts)\n"
      "  passed    outer > class > good\n");
}

TEST(HumanView, SaysHowManyMoreThereAre) {
  records::JunitReport report = failedReport();
  report.findings = {};
  report.totals = {.cases = 1000, .passed = 1000};
  report.cases.assign(1000, caseNamed("good", records::CaseOutcome::PASSED));
  const std::string text = toText("r.xml", report, {});
  EXPECT_TRUE(text.ends_with("            … and 960 more\n")) << text;
  EXPECT_LT(text.size(), 3000u);
}

TEST(HumanView, ShowsWhatWouldActOnATerminal) {
  records::JunitReport report = failedReport();
  report.cases = {caseNamed(HOSTILE, records::CaseOutcome::FAILED)};
  const std::string text = toText(HOSTILE, report, {});
  for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  const std::string shown = R"(\u{1b}[2J\u{7f}\u{85}\u{9b}\u{61c}\u{200e}\u{200f}\u{202a}\u{202e})"
                            R"(\u{2066}\u{2069}\u{2028}\u{2029}\u{a}\u{d}\u{9}"\\<)"
                            "\U0001f642";
  EXPECT_TRUE(text.starts_with(shown + ": JUnit report")) << text;
  EXPECT_NE(text.find("> " + shown + "\n"), std::string::npos) << text;
}

TEST(HumanView, ExplainsARefusal) {
  records::VerdictsReport report;
  report.status = Status::REFUSED;
  report.reason = Reason::CONTROL_CHARACTER;
  report.line = 7;
  EXPECT_EQ(toText("v", report, {}),
            "v: verdict records: refused\n"
            "  why       a text other than a detail holds control characters (control-character)\n"
            "  where     line 7\n"
            "  remedy    have the producer drop them\n");
}

TEST(HumanView, ColoursOnlyWhereAsked) {
  EXPECT_EQ(toText("r", failedReport(), {}).find('\x1b'), std::string::npos);
  EXPECT_TRUE(toText("r", failedReport(), {.colour = true})
                  .starts_with("r: JUnit report: \x1b[31mnot green\x1b[0m\n"));
}

TEST(HumanView, ListsGaps) {
  records::CoverageReport report;
  report.status = Status::OK;
  report.sources.push_back({.source = "fine", .answer = records::Coverage::COMPLETE, .gaps = {}});
  report.sources.push_back({.source = "edr",
                            .answer = records::Coverage::INCOMPLETE,
                            .gaps = {{{0, 10}, Finding::HOLE}},
                            .dropped = 4});
  EXPECT_EQ(toText("c", report, {}),
            "c: coverage: incomplete\n"
            "  source    edr: incomplete, 4 dropped\n"
            "    gap     0 to 10 ms: nothing was watched for some of the time\n"
            "  source    fine: complete\n");
}

TEST(Words, AreThereForEveryCode) {
  for (int i = 1; i <= static_cast<int>(Reason::READER_LOST); ++i) {
    const auto words = wordsOf(static_cast<Reason>(i));
    EXPECT_FALSE(words.meaning.empty()) << i;
    EXPECT_FALSE(words.remedy.empty()) << i;
  }
  for (std::size_t i = 0; i < records::FINDING_COUNT; ++i) {
    EXPECT_NE(wordsOf(static_cast<Finding>(i)), "unknown") << i;
  }
}

}  // namespace
}  // namespace cordon::cli
