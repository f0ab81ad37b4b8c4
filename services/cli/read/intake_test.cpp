#include "services/cli/read/intake.h"

#include <cstdint>
#include <functional>
#include <string>
#include <variant>

#include <capnp/message.h>
#include <gtest/gtest.h>

namespace cordon::cli {
namespace {

using records::Status;

capnp::Data::Reader data(const std::string& text) {
  return {reinterpret_cast<const kj::byte*>(text.data()), text.size()};
}

// The words of a breach, or "taken".
template <typename Report>
std::string wordsOf(const std::variant<Report, Breach>& taken) {
  const auto* breach = std::get_if<Breach>(&taken);
  return breach != nullptr ? breach->what : "taken";
}
std::string wordsOf(const std::optional<Breach>& breach) {
  return breach ? breach->what : "taken";
}

// A code that the schema does not have.
template <typename T>
T unknownCode() {
  return static_cast<T>(60000);
}

// ---- JUnit ----

using EditCase = std::function<void(protocols::JunitCase::Builder)>;
using EditJunit = std::function<void(protocols::JunitReport::Builder)>;

void writeCase(protocols::JunitCase::Builder one, const std::string& name) {
  one.initSuite(1).set(0, data("suite"));
  one.setClassName(data("class"));
  one.setName(data(name));
  one.setAttempts(1);
}

std::string takePiece(unsigned count, const EditCase& edit) {
  capnp::MallocMessageBuilder message;
  auto piece = message.initRoot<protocols::CaseSink::WriteParams>().initCases(count);
  for (auto one : piece) {
    writeCase(one, "name");
    edit(one);
  }
  CaseIntake intake;
  return wordsOf(intake.take(piece.asReader()));
}

// An honest answer about one passed case, and what `edit` makes of it.
std::variant<records::JunitReport, Breach> takeEdited(const EditJunit& edit, bool isEnded = true) {
  capnp::MallocMessageBuilder message;
  auto piece = message.initRoot<protocols::CaseSink::WriteParams>().initCases(1);
  writeCase(piece[0], "name");
  CaseIntake intake;
  EXPECT_EQ(wordsOf(intake.take(piece.asReader())), "taken");
  if (isEnded) {
    EXPECT_EQ(wordsOf(intake.end()), "taken");
  }
  capnp::MallocMessageBuilder answer;
  auto report = answer.initRoot<protocols::JunitReport>();
  report.setCases(1);
  report.setPassed(1);
  report.setGreen(true);
  report.setListed(1);
  edit(report);
  return takeJunit(report.asReader(), std::move(intake));
}
std::string verdictOn(const EditJunit& edit) {
  return wordsOf(takeEdited(edit));
}

TEST(JunitIntake, TakesAnHonestReport) {
  const auto taken = takeEdited([](auto) {});
  const auto& report = std::get<records::JunitReport>(taken);
  EXPECT_EQ(report.status, Status::OK);
  EXPECT_EQ(report.totals, (records::JunitTotals{.cases = 1, .passed = 1}));
  EXPECT_TRUE(report.green);
  ASSERT_EQ(report.cases.size(), 1u);
  EXPECT_EQ(report.cases[0].suite, std::vector<std::string>{"suite"});
  EXPECT_EQ(report.cases[0].className, "class");
  EXPECT_EQ(report.cases[0].name, "name");
}

TEST(JunitIntake, HoldsStatusAndReasonTogether) {
  const std::string no = "a status with its reason";
  using S = protocols::RecordStatus;
  using R = protocols::RecordReason;
  const auto with = [](S status, R reason) {
    return verdictOn([&](protocols::JunitReport::Builder report) {
      report.setStatus(status);
      report.setReason(reason);
      report.setGreen(false);
    });
  };
  EXPECT_EQ(with(S::UNPARSABLE, R::NOT_WELL_FORMED), "taken");
  EXPECT_EQ(with(S::REFUSED, R::DOCTYPE), "taken");
  EXPECT_EQ(with(S::OK, R::DOCTYPE), no);
  EXPECT_EQ(with(S::EMPTY, R::DOCTYPE), no);
  EXPECT_EQ(with(S::UNPARSABLE, R::NONE), no);
  EXPECT_EQ(with(S::REFUSED, R::NONE), no);
  EXPECT_EQ(with(S::MISSING, R::NONE), no);  // it holds the file open
  EXPECT_EQ(with(unknownCode<S>(), R::NONE), no);
  EXPECT_EQ(with(S::REFUSED, unknownCode<R>()), no);
  for (const auto ours : {R::NOT_REGULAR, R::NOT_READABLE, R::READER_LOST}) {
    EXPECT_EQ(with(S::REFUSED, ours), no);
  }
}

TEST(JunitIntake, AddsUp) {
  const std::string no = "totals that do not add up";
  EXPECT_EQ(verdictOn([](auto report) { report.setCases(2); }), no);
  EXPECT_EQ(verdictOn([](auto report) { report.setFailed(1); }), no);
  // Sums to 1 modulo 2^64.
  EXPECT_EQ(verdictOn([](auto report) {
              report.setFailed(UINT64_MAX);
              report.setErrored(1);
            }),
            no);
  EXPECT_EQ(verdictOn([](auto report) {
              report.setCases(5'000'001);
              report.setPassed(5'000'001);
              report.setTruncated(true);
            }),
            no);
}

TEST(JunitIntake, BelievesNoGreenAgainstItsFigures) {
  const std::string no = "green against its own totals";
  using Report = protocols::JunitReport::Builder;
  const std::vector<std::function<void(Report)>> bad = {
      [](Report report) { report.setFailed(1); },
      [](Report report) { report.setErrored(1); },
      [](Report report) { report.setFlaky(1); },
      [](Report report) { report.setUnknown(1); },
      [](Report report) { report.setPassed(0), report.setSkipped(2); },
  };
  for (const auto& edit : bad) {
    EXPECT_EQ(verdictOn([&](Report report) {
                report.setCases(2);
                edit(report);
              }),
              no);
  }
  EXPECT_EQ(verdictOn([](Report report) {
              report.setStatus(protocols::RecordStatus::REFUSED);
              report.setReason(protocols::RecordReason::TOO_DEEP);
            }),
            no);
}

TEST(JunitIntake, ComparesTheListWithTheTotals) {
  EXPECT_EQ(verdictOn([](auto report) { report.setListed(2); }),
            "a list of cases that is not whole");
  EXPECT_EQ(wordsOf(takeEdited([](auto) {}, false)), "a list of cases that is not whole");
  // One passed case is listed.
  EXPECT_EQ(verdictOn([](auto report) {
              report.setPassed(0);
              report.setFailed(1);
              report.setGreen(false);
            }),
            "totals that are not those of the cases");
  EXPECT_EQ(verdictOn([](auto report) {
              report.setPassed(2);
              report.setCases(2);
            }),
            "totals that are not those of the cases");
  EXPECT_EQ(verdictOn([](auto report) {
              report.setPassed(2);
              report.setCases(2);
              report.setTruncated(true);
            }),
            "taken");
}

TEST(JunitIntake, ThrowsAwayTheListOfWhatIsNotRead) {
  const auto taken = takeEdited([](auto report) {
    report.setStatus(protocols::RecordStatus::UNPARSABLE);
    report.setReason(protocols::RecordReason::NOT_UTF8);
    report.setGreen(false);
  });
  EXPECT_TRUE(std::get<records::JunitReport>(taken).cases.empty());
}

TEST(JunitIntake, KnowsItsFindings) {
  const auto with = [](std::vector<protocols::RecordFinding> codes) {
    return verdictOn([&](protocols::JunitReport::Builder report) {
      auto list = report.initFindings(static_cast<unsigned>(codes.size()));
      for (unsigned i = 0; i < list.size(); ++i) list.set(i, codes[i]);
    });
  };
  using F = protocols::RecordFinding;
  EXPECT_EQ(with({F::NAMELESS_CASE, F::UNKNOWN_STATUS}), "taken");
  EXPECT_EQ(with({F::NAMELESS_CASE, F::NAMELESS_CASE}), "findings");
  EXPECT_EQ(with({F::SEQUENCE_GAP}), "findings");
  EXPECT_EQ(with({F::HOLE}), "findings");
  EXPECT_EQ(with({unknownCode<F>()}), "findings");
  EXPECT_EQ(with(std::vector<F>(100000, F::NAMELESS_CASE)), "findings");
}

TEST(CaseIntake, BoundsPieces) {
  EXPECT_EQ(takePiece(1, [](auto) {}), "taken");
  EXPECT_EQ(takePiece(256, [](auto) {}), "taken");
  EXPECT_EQ(takePiece(0, [](auto) {}), "a piece of the list of cases");
  EXPECT_EQ(takePiece(257, [](auto) {}), "a piece of the list of cases");
}

TEST(CaseIntake, BoundsTheList) {
  capnp::MallocMessageBuilder message;
  auto piece = message.initRoot<protocols::CaseSink::WriteParams>().initCases(250);
  for (auto one : piece) writeCase(one, "name");
  CaseIntake intake;
  for (int i = 0; i < 40; ++i) ASSERT_EQ(wordsOf(intake.take(piece.asReader())), "taken");
  EXPECT_EQ(wordsOf(intake.take(piece.asReader())), "too many cases");
}

TEST(CaseIntake, BoundsAllText) {
  capnp::MallocMessageBuilder message;
  auto piece = message.initRoot<protocols::CaseSink::WriteParams>().initCases(128);
  for (auto one : piece) {
    writeCase(one, "");
    one.setText(data(std::string(65536 - 10, 'x')));  // with "suite" and "class": 64 KiB
  }
  CaseIntake intake;
  ASSERT_EQ(wordsOf(intake.take(piece.asReader())), "taken");  // 8 MiB, exactly
  EXPECT_EQ(wordsOf(intake.take(piece.asReader())), "too much text in cases");
}

TEST(CaseIntake, EndsOnce) {
  capnp::MallocMessageBuilder message;
  auto piece = message.initRoot<protocols::CaseSink::WriteParams>().initCases(1);
  writeCase(piece[0], "name");
  CaseIntake intake;
  EXPECT_EQ(wordsOf(intake.end()), "taken");
  EXPECT_EQ(wordsOf(intake.end()), "a list of cases that ends twice");
  EXPECT_EQ(wordsOf(intake.take(piece.asReader())), "cases behind the end of their list");
}

TEST(CaseIntake, BoundsEachCase) {
  using Case = protocols::JunitCase::Builder;
  EXPECT_EQ(takePiece(1, [](Case one) { one.setName(data("\xc0\x80")); }), "a text of a case");
  EXPECT_EQ(takePiece(1, [](Case one) { one.setClassName(data("\xff")); }), "a text of a case");
  EXPECT_EQ(takePiece(1, [](Case one) { one.setText(data("\xed\xa0\x80")); }), "a text of a case");
  EXPECT_EQ(takePiece(1, [](Case one) { one.getSuite().set(0, data("\xfe")); }),
            "the name of a suite");
  EXPECT_EQ(takePiece(1, [](Case one) { one.setText(data(std::string(65536, 'x'))); }),
            "a text of a case");
  EXPECT_EQ(takePiece(1, [](Case one) { one.initSuite(64); }), "taken");
  EXPECT_EQ(takePiece(1, [](Case one) { one.initSuite(65); }), "a case in too many suites");
  EXPECT_EQ(takePiece(1, [](Case one) { one.setAttempts(0); }), "attempts of a case");
  EXPECT_EQ(takePiece(1, [](Case one) { one.setAttempts(5'000'001); }), "attempts of a case");
  EXPECT_EQ(takePiece(1, [](Case one) { one.setOutcome(unknownCode<protocols::CaseOutcome>()); }),
            "an outcome");
  EXPECT_EQ(takePiece(1, [](Case one) { one.setTruncated(true); }), "the digest of a text");
  EXPECT_EQ(takePiece(1, [](Case one) { one.setTextSha256(data(std::string(31, 'x'))); }),
            "the digest of a text");
  EXPECT_EQ(takePiece(1,
                      [](Case one) {
                        one.setTruncated(true);
                        one.setTextSha256(data(std::string(32, 'x')));
                      }),
            "taken");
}

// ---- verdicts ----

using EditRecord = std::function<void(protocols::VerdictRecord::Builder)>;
using EditVerdicts = std::function<void(protocols::VerdictsReport::Builder)>;

void writeRecord(protocols::VerdictRecord::Builder one) {
  one.setSeq(1);
  one.setCheck(data("check"));
  one.setOutcome(protocols::VerdictOutcome::PASS);
}

std::string takeRecord(const EditRecord& edit) {
  capnp::MallocMessageBuilder message;
  auto piece = message.initRoot<protocols::VerdictSink::WriteParams>().initRecords(1);
  writeRecord(piece[0]);
  edit(piece[0]);
  VerdictIntake intake;
  return wordsOf(intake.take(piece.asReader()));
}

std::string verdictOnVerdicts(const EditVerdicts& edit) {
  capnp::MallocMessageBuilder message;
  auto piece = message.initRoot<protocols::VerdictSink::WriteParams>().initRecords(1);
  writeRecord(piece[0]);
  VerdictIntake intake;
  EXPECT_EQ(wordsOf(intake.take(piece.asReader())), "taken");
  EXPECT_EQ(wordsOf(intake.end()), "taken");
  capnp::MallocMessageBuilder answer;
  auto report = answer.initRoot<protocols::VerdictsReport>();
  report.setRun(data(std::string(16, 'r')));
  report.setRecords(1);
  report.setPassed(1);
  report.setGreen(true);
  report.setListed(1);
  edit(report);
  return wordsOf(takeVerdicts(report.asReader(), std::move(intake)));
}

TEST(VerdictIntake, BoundsEachRecord) {
  using Record = protocols::VerdictRecord::Builder;
  EXPECT_EQ(takeRecord([](Record) {}), "taken");
  EXPECT_EQ(takeRecord([](Record one) { one.setSeq(0); }), "a seq");
  EXPECT_EQ(takeRecord([](Record one) { one.setSeq(std::uint64_t{1} << 53); }), "a seq");
  EXPECT_EQ(takeRecord([](Record one) { one.setCheck(data("\x80")); }), "the name of a check");
  EXPECT_EQ(takeRecord([](Record one) { one.setGoal(data("g")); }), "a goal");
  EXPECT_EQ(takeRecord([](Record one) {
              one.setHasGoal(true);
              one.setGoal(data("g"));
            }),
            "taken");
  EXPECT_EQ(takeRecord([](Record one) { one.setDetail(data("d")); }), "a detail");
  EXPECT_EQ(takeRecord([](Record one) {
              one.setHasDetail(true);
              one.setDetail(data(std::string(16385, 'd')));
            }),
            "a detail");
  EXPECT_EQ(takeRecord([](Record one) { one.setObservedMs(INT64_MIN); }), "a time");
  EXPECT_EQ(
      takeRecord([](Record one) { one.setOutcome(unknownCode<protocols::VerdictOutcome>()); }),
      "an outcome");
  EXPECT_EQ(takeRecord([](Record one) { one.setProofSha256(data(std::string(32, 'x'))); }),
            "a proof");
  EXPECT_EQ(takeRecord([](Record one) { one.setProofKind(data("file")); }), "a proof");
  EXPECT_EQ(takeRecord([](Record one) { one.setProofKind(data("File")); }), "a kind of proof");
  EXPECT_EQ(takeRecord([](Record one) { one.setProofKind(data(std::string(33, 'k'))); }),
            "a kind of proof");
}

TEST(VerdictIntake, HoldsTheReportAgainstItsList) {
  using Report = protocols::VerdictsReport::Builder;
  EXPECT_EQ(verdictOnVerdicts([](Report) {}), "taken");
  EXPECT_EQ(verdictOnVerdicts([](Report report) { report.setRun(data("short")); }), "a run");
  EXPECT_EQ(verdictOnVerdicts([](Report report) { report.setRecords(2); }),
            "totals that do not add up");
  EXPECT_EQ(verdictOnVerdicts([](Report report) { report.setListed(0); }),
            "a list of records that is not whole");
  EXPECT_EQ(verdictOnVerdicts([](Report report) { report.setTamper(true); }),
            "green against its own totals");
  EXPECT_EQ(verdictOnVerdicts([](Report report) {
              report.initFindings(1).set(0, protocols::RecordFinding::SEQUENCE_GAP);
            }),
            "green against its own totals");
  EXPECT_EQ(verdictOnVerdicts([](Report report) {
              report.initFindings(1).set(0, protocols::RecordFinding::HOLE);
            }),
            "findings");
  EXPECT_EQ(verdictOnVerdicts([](Report report) {
              report.setPassed(0);
              report.setSkipped(1);
            }),
            "green against its own totals");
  EXPECT_EQ(verdictOnVerdicts([](Report report) {
              report.setPassed(0);
              report.setSkipped(1);
              report.setGreen(false);
            }),
            "totals that are not those of the records");
}

// ---- coverage ----

using EditCoverage = std::function<void(protocols::CoverageReport::Builder)>;

std::string verdictOnCoverage(const EditCoverage& edit) {
  capnp::MallocMessageBuilder message;
  auto report = message.initRoot<protocols::CoverageReport>();
  report.initSources(1)[0].setSource(data("edr"));
  edit(report);
  return wordsOf(takeCoverage(report.asReader()));
}

TEST(CoverageIntake, TakesAnHonestReport) {
  EXPECT_EQ(verdictOnCoverage([](auto) {}), "taken");
}

TEST(CoverageIntake, BoundsSources) {
  using Report = protocols::CoverageReport::Builder;
  const auto named = [](const std::string& name) {
    return verdictOnCoverage([&](Report report) { report.getSources()[0].setSource(data(name)); });
  };
  EXPECT_EQ(named(std::string(256, 's')), "taken");
  EXPECT_EQ(named(std::string(257, 's')), "the name of a source");
  EXPECT_EQ(named(""), "taken");
  EXPECT_EQ(named("\xff"), "the name of a source");
  EXPECT_EQ(verdictOnCoverage([](Report report) { report.initSources(1025); }), "too many sources");
  EXPECT_EQ(verdictOnCoverage([](Report report) { report.initSources(0); }),
            "a file without a source");
  EXPECT_EQ(verdictOnCoverage([](Report report) {
              for (auto source : report.initSources(2)) source.setSource(data("same"));
            }),
            "a source that is there twice");
}

TEST(CoverageIntake, BoundsGaps) {
  using Report = protocols::CoverageReport::Builder;
  const auto with = [](unsigned count,
                       const std::function<void(protocols::CoverageReport::Gap::Builder)>& edit) {
    return verdictOnCoverage([&](Report report) {
      report.setAnswer(protocols::CoverageAnswer::INCOMPLETE);
      auto source = report.getSources()[0];
      source.setAnswer(protocols::CoverageAnswer::INCOMPLETE);
      for (auto gap : source.initGaps(count)) {
        gap.setWhy(protocols::RecordFinding::HOLE);
        edit(gap);
      }
    });
  };
  EXPECT_EQ(with(4096, [](auto) {}), "taken");
  EXPECT_EQ(with(4097, [](auto) {}), "too many gaps");
  EXPECT_EQ(with(1, [](auto gap) { gap.setFromMs(INT64_MIN); }), "a time");
  EXPECT_EQ(with(1, [](auto gap) { gap.setToMs(std::int64_t{1} << 53); }), "a time");
  EXPECT_EQ(with(1, [](auto gap) { gap.setWhy(protocols::RecordFinding::NESTED_CASE); }),
            "why a gap is one");
  EXPECT_EQ(with(1, [](auto gap) { gap.setWhy(unknownCode<protocols::RecordFinding>()); }),
            "why a gap is one");
}

TEST(CoverageIntake, BelievesNoBetterAnswerThanItsParts) {
  using Report = protocols::CoverageReport::Builder;
  EXPECT_EQ(verdictOnCoverage([](Report report) {
              report.getSources()[0].setAnswer(protocols::CoverageAnswer::INCOMPLETE);
            }),
            "an answer better than that of a source");
  EXPECT_EQ(verdictOnCoverage([](Report report) {
              auto gap = report.getSources()[0].initGaps(1)[0];
              gap.setWhy(protocols::RecordFinding::HOLE);
            }),
            "a complete source with gaps");
  EXPECT_EQ(verdictOnCoverage([](Report report) {
              report.setStatus(protocols::RecordStatus::REFUSED);
              report.setReason(protocols::RecordReason::UNKNOWN_KEY);
            }),
            "an answer that does not go with the status");
  EXPECT_EQ(
      verdictOnCoverage([](Report report) { report.setStatus(protocols::RecordStatus::EMPTY); }),
      "an answer that does not go with the status");
}

}  // namespace
}  // namespace cordon::cli
