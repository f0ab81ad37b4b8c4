#include "services/parser/record-results.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <capnp/message.h>
#include <capnp/schema.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kj/async.h>

#include "services/parser/testing/list-sinks.h"

namespace cordon::parser {
namespace {

using ::testing::ElementsAre;
using tests::CaseList;
using tests::VerdictList;

// "not-well-formed" → "notWellFormed"; nothing → "none".
std::string camelCase(std::string_view words) {
  std::string result;
  bool upper = false;
  for (const char c : words) {
    if (c == '-') {
      upper = true;
    } else {
      result += upper ? static_cast<char>(c - 'a' + 'A') : c;
      upper = false;
    }
  }
  return result.empty() ? "none" : result;
}

template <typename Ours, typename Protocol>
void expectSameEnumerators(Ours last) {
  const auto enumerants = capnp::Schema::from<Protocol>().getEnumerants();
  ASSERT_EQ(enumerants.size(), static_cast<std::size_t>(last) + 1);
  for (const auto enumerant : enumerants) {
    EXPECT_EQ(camelCase(records::nameOf(static_cast<Ours>(enumerant.getOrdinal()))),
              enumerant.getProto().getName().cStr());
  }
}

TEST(RecordResults, EnumeratorsStandInTheSameOrderAsOnTheWire) {
  expectSameEnumerators<records::Status, protocols::RecordStatus>(records::Status::REFUSED);
  expectSameEnumerators<records::Reason, protocols::RecordReason>(records::Reason::READER_LOST);
  expectSameEnumerators<records::Finding, protocols::RecordFinding>(
      records::Finding::AHEAD_OF_HOST);
}

template <typename Ours, typename Protocol>
void expectSameNumber(Ours ours, Protocol protocol) {
  EXPECT_EQ(static_cast<int>(ours), static_cast<int>(protocol));
}

TEST(RecordResults, OutcomesToo) {
  using Case = protocols::CaseOutcome;
  expectSameNumber(records::CaseOutcome::PASSED, Case::PASSED);
  expectSameNumber(records::CaseOutcome::SKIPPED, Case::SKIPPED);
  expectSameNumber(records::CaseOutcome::FLAKY, Case::FLAKY);
  expectSameNumber(records::CaseOutcome::UNKNOWN, Case::UNKNOWN);
  expectSameNumber(records::CaseOutcome::FAILED, Case::FAILED);
  expectSameNumber(records::CaseOutcome::ERRORED, Case::ERRORED);
  using Verdict = protocols::VerdictOutcome;
  expectSameNumber(records::VerdictOutcome::PASS, Verdict::PASS);
  expectSameNumber(records::VerdictOutcome::FAIL, Verdict::FAIL);
  expectSameNumber(records::VerdictOutcome::ERROR, Verdict::ERROR);
  expectSameNumber(records::VerdictOutcome::SKIP, Verdict::SKIP);
  using Answer = protocols::CoverageAnswer;
  expectSameNumber(records::Coverage::COMPLETE, Answer::COMPLETE);
  expectSameNumber(records::Coverage::INCOMPLETE, Answer::INCOMPLETE);
  expectSameNumber(records::Coverage::CONTRADICTORY, Answer::CONTRADICTORY);
}

std::string text(capnp::Data::Reader bytes) {
  return {bytes.asChars().begin(), bytes.size()};
}

template <typename Protocol, typename Report>
struct Written {
  explicit Written(const Report& report) { writeReport(report, message.initRoot<Protocol>()); }
  typename Protocol::Reader get() { return message.getRoot<Protocol>().asReader(); }
  capnp::MallocMessageBuilder message;
};

records::JunitReport junitReport() {
  records::JunitReport report{.status = records::Status::OK,
                              .offset = 5,
                              .totals = {.cases = 21,
                                         .passed = 1,
                                         .failed = 2,
                                         .errored = 3,
                                         .skipped = 4,
                                         .flaky = 5,
                                         .unknown = 6},
                              .green = true,
                              .claimsMismatch = true,
                              .truncated = true,
                              .foreignElements = 7,
                              .unknownElements = 8};
  report.findings.add(records::Finding::BAD_CLAIM);
  report.findings.add(records::Finding::NAMELESS_CASE);
  report.cases.resize(3);
  return report;
}

TEST(RecordResults, AJunitReportKeepsAllThatItSays) {
  Written<protocols::JunitReport, records::JunitReport> written(junitReport());
  const auto report = written.get();
  EXPECT_EQ(report.getStatus(), protocols::RecordStatus::OK);
  EXPECT_EQ(report.getReason(), protocols::RecordReason::NONE);
  EXPECT_EQ(report.getOffset(), 5U);
  EXPECT_EQ(report.getCases(), 21U);
  EXPECT_EQ(report.getPassed(), 1U);
  EXPECT_EQ(report.getFailed(), 2U);
  EXPECT_EQ(report.getErrored(), 3U);
  EXPECT_EQ(report.getSkipped(), 4U);
  EXPECT_EQ(report.getFlaky(), 5U);
  EXPECT_EQ(report.getUnknown(), 6U);
  EXPECT_TRUE(report.getGreen());
  EXPECT_TRUE(report.getClaimsMismatch());
  EXPECT_TRUE(report.getTruncated());
  EXPECT_EQ(report.getListed(), 3U);
  EXPECT_EQ(report.getForeignElements(), 7U);
  EXPECT_EQ(report.getUnknownElements(), 8U);
  ASSERT_EQ(report.getFindings().size(), 2U);
  EXPECT_EQ(report.getFindings()[0], protocols::RecordFinding::NAMELESS_CASE);
  EXPECT_EQ(report.getFindings()[1], protocols::RecordFinding::BAD_CLAIM);
}

TEST(RecordResults, AReportThatIsNotOkListsNothing) {
  records::JunitReport junit = junitReport();
  junit.status = records::Status::REFUSED;
  junit.reason = records::Reason::DOCTYPE;
  Written<protocols::JunitReport, records::JunitReport> written(junit);
  EXPECT_EQ(written.get().getStatus(), protocols::RecordStatus::REFUSED);
  EXPECT_EQ(written.get().getReason(), protocols::RecordReason::DOCTYPE);
  EXPECT_EQ(written.get().getListed(), 0U);
}

TEST(RecordResults, AVerdictsReportKeepsAllThatItSays) {
  records::VerdictsReport from{.status = records::Status::OK, .line = 9, .records = 10};
  from.run.fill(0xab);
  from.outcomes = {1, 2, 3, 4};
  from.tamper = true;
  from.green = true;
  from.truncated = true;
  from.list.resize(2);
  from.findings.add(records::Finding::TORN_TAIL);
  Written<protocols::VerdictsReport, records::VerdictsReport> written(from);
  const auto report = written.get();
  EXPECT_EQ(report.getLine(), 9U);
  EXPECT_EQ(text(report.getRun()), std::string(16, '\xab'));
  EXPECT_EQ(report.getRecords(), 10U);
  EXPECT_EQ(report.getPassed(), 1U);
  EXPECT_EQ(report.getFailed(), 2U);
  EXPECT_EQ(report.getErrored(), 3U);
  EXPECT_EQ(report.getSkipped(), 4U);
  EXPECT_TRUE(report.getTamper());
  EXPECT_TRUE(report.getGreen());
  EXPECT_TRUE(report.getTruncated());
  EXPECT_EQ(report.getListed(), 2U);
  ASSERT_EQ(report.getFindings().size(), 1U);
  EXPECT_EQ(report.getFindings()[0], protocols::RecordFinding::TORN_TAIL);
}

TEST(RecordResults, ACoverageReportKeepsAllThatItSays) {
  records::CoverageReport from{.status = records::Status::OK,
                               .line = 3,
                               .answer = records::Coverage::INCOMPLETE,
                               .truncated = true};
  from.sources = {{.source = "dns",
                   .answer = records::Coverage::INCOMPLETE,
                   .gaps = {{.window = {.fromMs = -5, .toMs = 10}, .why = records::Finding::HOLE}},
                   .dropped = 7,
                   .restarts = 2},
                  {.source = "edr", .answer = records::Coverage::COMPLETE}};
  Written<protocols::CoverageReport, records::CoverageReport> written(from);
  const auto report = written.get();
  EXPECT_EQ(report.getLine(), 3U);
  EXPECT_EQ(report.getAnswer(), protocols::CoverageAnswer::INCOMPLETE);
  EXPECT_TRUE(report.getTruncated());
  ASSERT_EQ(report.getSources().size(), 2U);
  const auto source = report.getSources()[0];
  EXPECT_EQ(text(source.getSource()), "dns");
  EXPECT_EQ(source.getAnswer(), protocols::CoverageAnswer::INCOMPLETE);
  EXPECT_EQ(source.getDropped(), 7U);
  EXPECT_EQ(source.getRestarts(), 2U);
  ASSERT_EQ(source.getGaps().size(), 1U);
  EXPECT_EQ(source.getGaps()[0].getFromMs(), -5);
  EXPECT_EQ(source.getGaps()[0].getToMs(), 10);
  EXPECT_EQ(source.getGaps()[0].getWhy(), protocols::RecordFinding::HOLE);
  EXPECT_EQ(text(report.getSources()[1].getSource()), "edr");
  EXPECT_EQ(report.getSources()[1].getAnswer(), protocols::CoverageAnswer::COMPLETE);
}

TEST(RecordResults, WindowsAreWholeOrNotEmpty) {
  capnp::MallocMessageBuilder message;
  auto window = message.initRoot<protocols::CoverageWindow>();
  ASSERT_TRUE(readWindow(window));
  EXPECT_EQ(readWindow(window)->bounds, std::nullopt);
  window.initBounds().setFromMs(-1);
  window.getBounds().setToMs(1);
  ASSERT_TRUE(readWindow(window));
  EXPECT_EQ(readWindow(window)->bounds, (records::Window{.fromMs = -1, .toMs = 1}));
  window.getBounds().setToMs(-1);
  EXPECT_FALSE(readWindow(window));
  window.getBounds().setToMs(-2);
  EXPECT_FALSE(readWindow(window));
}

class RecordLists : public ::testing::Test {
 protected:
  ~RecordLists() noexcept override = default;

  kj::EventLoop loop;
  kj::WaitScope scope{loop};
};

TEST_F(RecordLists, ACaseKeepsAllThatItSays) {
  records::JunitReport report{.status = records::Status::OK};
  records::JunitCase of{.suite = {"outer", "", "inner"},
                        .className = "class",
                        .name = std::string("na\0me", 5),
                        .outcome = records::CaseOutcome::FLAKY,
                        .attempts = 3,
                        .text = "said",
                        .truncated = true,
                        .textBytes = 99};
  of.textSha256.fill(7);
  report.cases = {of, {.name = "short"}};
  CaseList list;
  writeList(report, list.sink()).wait(scope);
  EXPECT_EQ(list.ends, 1U);
  EXPECT_THAT(list.pieces, ElementsAre(2U));
  ASSERT_EQ(list.cases.size(), 2U);
  const records::JunitCase& got = list.cases[0];
  EXPECT_EQ(got.suite, of.suite);
  EXPECT_EQ(got.className, of.className);
  EXPECT_EQ(got.name, of.name);
  EXPECT_EQ(got.outcome, of.outcome);
  EXPECT_EQ(got.attempts, of.attempts);
  EXPECT_EQ(got.text, of.text);
  EXPECT_TRUE(got.truncated);
  EXPECT_EQ(got.textBytes, of.textBytes);
  EXPECT_EQ(got.textSha256, of.textSha256);
  EXPECT_FALSE(list.cases[1].truncated);
}

TEST_F(RecordLists, PiecesHoldAtMost256Items) {
  records::JunitReport report{.status = records::Status::OK};
  report.cases.resize(600);
  for (std::size_t i = 0; i < report.cases.size(); ++i) report.cases[i].name = std::to_string(i);
  CaseList list;
  writeList(report, list.sink()).wait(scope);
  EXPECT_THAT(list.pieces, ElementsAre(256U, 256U, 88U));
  ASSERT_EQ(list.cases.size(), 600U);
  EXPECT_EQ(list.cases[599].name, "599");
}

TEST_F(RecordLists, PiecesHoldAtMost512KiB) {
  records::JunitReport report{.status = records::Status::OK};
  // Eight of them are exactly 512 KiB, of which each part counts.
  report.cases.assign(20, {.suite = {std::string(1000, 's')},
                           .className = std::string(1000, 'c'),
                           .name = std::string(1000, 'n'),
                           .text = std::string(65536 - 3000, 't')});
  CaseList list;
  writeList(report, list.sink()).wait(scope);
  EXPECT_THAT(list.pieces, ElementsAre(8U, 8U, 4U));
  report.cases.assign(9, {.text = std::string(65537, 't')});
  CaseList larger;
  writeList(report, larger.sink()).wait(scope);
  EXPECT_THAT(larger.pieces, ElementsAre(7U, 2U));
}

TEST_F(RecordLists, TheLargestCasesFitAMessage) {
  records::JunitReport report{.status = records::Status::OK};
  // As many strings as a piece can have, each of an odd length.
  report.cases.assign(
      256,
      {.suite = std::vector<std::string>(64, std::string(31, 's')), .className = "c", .name = "n"});
  CaseList list;
  writeList(report, list.sink()).wait(scope);
  EXPECT_LT(list.largestMessage, std::size_t{1} << 20);
  EXPECT_EQ(list.cases.size(), 256U);
}

TEST_F(RecordLists, NothingIsWrittenOfAReportThatIsNotOk) {
  records::JunitReport report{.status = records::Status::UNPARSABLE};
  report.cases.resize(1);
  CaseList list;
  writeList(report, list.sink()).wait(scope);
  EXPECT_TRUE(list.pieces.empty());
  EXPECT_EQ(list.ends, 0U);
}

TEST_F(RecordLists, AnEmptyListIsEnded) {
  VerdictList list;
  writeList(records::VerdictsReport{.status = records::Status::OK}, list.sink()).wait(scope);
  EXPECT_TRUE(list.pieces.empty());
  EXPECT_EQ(list.ends, 1U);
}

TEST_F(RecordLists, AVerdictKeepsAllThatItSays) {
  records::VerdictsReport report{.status = records::Status::OK};
  records::VerdictRecord of{.seq = 7,
                            .check = "check",
                            .goal = "",
                            .outcome = records::VerdictOutcome::SKIP,
                            .observedMs = -4,
                            .proof = records::VerdictProof{.kind = "file-hash"},
                            .detail = "\x1b[31m"};
  of.proof->sha256.fill(9);
  report.list = {of, {.seq = 8, .check = "bare"}};
  VerdictList list;
  writeList(report, list.sink()).wait(scope);
  ASSERT_EQ(list.records.size(), 2U);
  const records::VerdictRecord& got = list.records[0];
  EXPECT_EQ(got.seq, of.seq);
  EXPECT_EQ(got.check, of.check);
  EXPECT_EQ(got.goal, of.goal);
  EXPECT_EQ(got.outcome, of.outcome);
  EXPECT_EQ(got.observedMs, of.observedMs);
  ASSERT_TRUE(got.proof);
  EXPECT_EQ(got.proof->kind, of.proof->kind);
  EXPECT_EQ(got.proof->sha256, of.proof->sha256);
  EXPECT_EQ(got.detail, of.detail);
  EXPECT_EQ(list.records[1].goal, std::nullopt);
  EXPECT_FALSE(list.records[1].proof);
  EXPECT_EQ(list.records[1].detail, std::nullopt);
}

TEST_F(RecordLists, ASinkThatFailsEndsTheWriting) {
  records::JunitReport report{.status = records::Status::OK};
  report.cases.resize(600);
  CaseList list;
  list.failsAt = 2;
  EXPECT_ANY_THROW(writeList(report, list.sink()).wait(scope));
  EXPECT_EQ(list.ends, 0U);
}

}  // namespace
}  // namespace cordon::parser
