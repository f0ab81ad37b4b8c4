#include "services/cli/read/intake.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>

#include "services/cli/read/intake-values.h"

namespace cordon::cli {
namespace {

using records::CaseOutcome;
using records::Coverage;
using records::Status;
using records::VerdictOutcome;

constexpr std::size_t MAX_PIECE = 256;  // elements of one write
constexpr std::size_t MAX_SUITES = 64;
constexpr std::size_t MAX_CASE_BYTES = 65536;  // of one case, names and text
constexpr std::size_t MAX_DETAIL = 16384;
constexpr std::uint64_t MAX_ELEMENTS = 5'000'000;  // of a JUnit report
constexpr std::uint64_t MAX_LINES = 1'000'000;     // of JSON Lines
constexpr std::int64_t MAX_INTEGER = (std::int64_t{1} << 53) - 1;

// The sum, or nothing where it does not fit.
std::optional<std::uint64_t> sumOf(std::initializer_list<std::uint64_t> numbers) {
  std::uint64_t sum = 0;
  for (const auto number : numbers) {
    if (number > std::numeric_limits<std::uint64_t>::max() - sum) return std::nullopt;
    sum += number;
  }
  return sum;
}

// A digest where there is something that it is of, and nowhere else.
template <std::size_t N>
bool takeBytes(capnp::Data::Reader data, bool isThere, std::array<std::uint8_t, N>& target) {
  if (data.size() != (isThere ? N : 0)) return false;
  std::copy(data.begin(), data.end(), target.begin());
  return true;
}

bool isInteger(std::int64_t number) {
  return number >= -MAX_INTEGER && number <= MAX_INTEGER;
}

std::variant<records::JunitCase, Breach> takeCase(protocols::JunitCase::Reader from) {
  records::JunitCase result;
  if (from.getSuite().size() > MAX_SUITES) return Breach{"a case in too many suites"};
  std::size_t room = MAX_CASE_BYTES;
  const auto take = [&room](capnp::Data::Reader data, std::string& target) {
    auto text = textFrom(data, room);
    if (!text) return false;
    room -= text->size();
    target = std::move(*text);
    return true;
  };
  for (const auto name : from.getSuite()) {
    if (!take(name, result.suite.emplace_back())) return Breach{"the name of a suite"};
  }
  if (!take(from.getClassName(), result.className) || !take(from.getName(), result.name) ||
      !take(from.getText(), result.text)) {
    return Breach{"a text of a case"};
  }
  const auto outcome = codeFrom(from.getOutcome(), CaseOutcome::ERRORED);
  if (!outcome) return Breach{"an outcome"};
  result.outcome = *outcome;
  result.attempts = from.getAttempts();
  if (result.attempts == 0 || result.attempts > MAX_ELEMENTS) return Breach{"attempts of a case"};
  result.truncated = from.getTruncated();
  result.textBytes = from.getTextBytes();
  // Of a text that is whole a digest may be given or not.
  const bool hasDigest = from.getTextSha256().size() != 0;
  if (!takeBytes(from.getTextSha256(), hasDigest || result.truncated, result.textSha256)) {
    return Breach{"the digest of a text"};
  }
  return result;
}

std::size_t bytesOf(const records::JunitCase& one) {
  std::size_t bytes = one.className.size() + one.name.size() + one.text.size();
  for (const auto& suite : one.suite) bytes += suite.size();
  return bytes;
}

bool isProofKind(std::string_view kind) {
  const auto isLegal = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !kind.empty() && kind.size() <= 32 && std::all_of(kind.begin(), kind.end(), isLegal);
}

std::variant<records::VerdictRecord, Breach> takeVerdict(protocols::VerdictRecord::Reader from) {
  records::VerdictRecord result;
  result.seq = from.getSeq();
  if (result.seq == 0 || result.seq > std::uint64_t{MAX_INTEGER}) return Breach{"a seq"};
  auto check = textFrom(from.getCheck(), MAX_CASE_BYTES);
  if (!check) return Breach{"the name of a check"};
  result.check = std::move(*check);
  auto goal = textFrom(from.getGoal(), MAX_CASE_BYTES - result.check.size());
  if (!goal || (!from.getHasGoal() && !goal->empty())) return Breach{"a goal"};
  const std::size_t room = MAX_CASE_BYTES - result.check.size() - goal->size();
  auto detail = textFrom(from.getDetail(), std::min(MAX_DETAIL, room));
  if (!detail || (!from.getHasDetail() && !detail->empty())) return Breach{"a detail"};
  if (from.getHasGoal()) result.goal = std::move(*goal);
  if (from.getHasDetail()) result.detail = std::move(*detail);
  const auto outcome = codeFrom(from.getOutcome(), VerdictOutcome::SKIP);
  if (!outcome) return Breach{"an outcome"};
  result.outcome = *outcome;
  result.observedMs = from.getObservedMs();
  if (!isInteger(result.observedMs)) return Breach{"a time"};
  const bool hasProof = from.getProofKind().size() != 0;
  records::VerdictProof proof;
  if (hasProof && !isProofKind(viewOf(from.getProofKind()))) return Breach{"a kind of proof"};
  if (!takeBytes(from.getProofSha256(), hasProof, proof.sha256)) return Breach{"a proof"};
  proof.kind = viewOf(from.getProofKind());
  if (hasProof) result.proof = std::move(proof);
  return result;
}

std::size_t bytesOf(const records::VerdictRecord& one) {
  return one.check.size() + (one.goal ? one.goal->size() : 0) +
         (one.detail ? one.detail->size() : 0);
}

// What the list says of one outcome, against the totals: all of it where the list is whole.
bool matches(std::uint64_t listed, std::uint64_t total, bool truncated) {
  return truncated ? listed <= total : listed == total;
}

std::optional<Breach> compare(const records::JunitReport& report) {
  std::array<std::uint64_t, 6> counted{};
  for (const auto& one : report.cases) ++counted[static_cast<std::size_t>(one.outcome)];
  const auto& totals = report.totals;
  // In the order of CaseOutcome.
  const std::array<std::uint64_t, 6> said = {totals.passed,  totals.skipped, totals.flaky,
                                             totals.unknown, totals.failed,  totals.errored};
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (!matches(counted[i], said[i], report.truncated)) {
      return Breach{"totals that are not those of the cases"};
    }
  }
  return std::nullopt;
}

std::optional<Breach> compare(const records::VerdictsReport& report) {
  std::array<std::uint64_t, 4> counted{};
  for (const auto& one : report.list) ++counted[static_cast<std::size_t>(one.outcome)];
  for (std::size_t i = 0; i < counted.size(); ++i) {
    if (!matches(counted[i], report.outcomes[i], report.truncated)) {
      return Breach{"totals that are not those of the records"};
    }
  }
  return std::nullopt;
}

bool mayBeGreen(const records::JunitReport& report) {
  const auto& totals = report.totals;
  return report.status == Status::OK && totals.passed > 0 && totals.failed == 0 &&
         totals.errored == 0 && totals.flaky == 0 && totals.unknown == 0;
}

bool mayBeGreen(const records::VerdictsReport& report) {
  const auto of = [&report](VerdictOutcome outcome) {
    return report.outcomes[static_cast<std::size_t>(outcome)];
  };
  return report.status == Status::OK && of(VerdictOutcome::PASS) > 0 &&
         of(VerdictOutcome::FAIL) == 0 && of(VerdictOutcome::ERROR) == 0 && !report.tamper &&
         report.findings.empty();
}

}  // namespace

std::optional<Breach> CaseIntake::take(capnp::List<protocols::JunitCase>::Reader piece) {
  if (isEnded) return Breach{"cases behind the end of their list"};
  if (piece.size() == 0 || piece.size() > MAX_PIECE) return Breach{"a piece of the list of cases"};
  if (cases.size() + piece.size() > protocols::MAX_LISTED_CASES) return Breach{"too many cases"};
  for (const auto from : piece) {
    auto taken = takeCase(from);
    if (const auto* breach = std::get_if<Breach>(&taken)) return *breach;
    auto& one = std::get<records::JunitCase>(taken);
    bytes += bytesOf(one);
    if (bytes > protocols::MAX_LIST_BYTES) return Breach{"too much text in cases"};
    cases.push_back(std::move(one));
  }
  return std::nullopt;
}

std::optional<Breach> CaseIntake::end() {
  if (isEnded) return Breach{"a list of cases that ends twice"};
  isEnded = true;
  return std::nullopt;
}

std::optional<Breach> VerdictIntake::take(capnp::List<protocols::VerdictRecord>::Reader piece) {
  if (isEnded) return Breach{"records behind the end of their list"};
  if (piece.size() == 0 || piece.size() > MAX_PIECE)
    return Breach{"a piece of the list of records"};
  if (list.size() + piece.size() > protocols::MAX_LISTED_VERDICTS)
    return Breach{"too many records"};
  for (const auto from : piece) {
    auto taken = takeVerdict(from);
    if (const auto* breach = std::get_if<Breach>(&taken)) return *breach;
    auto& one = std::get<records::VerdictRecord>(taken);
    bytes += bytesOf(one);
    if (bytes > protocols::MAX_LIST_BYTES) return Breach{"too much text in records"};
    list.push_back(std::move(one));
  }
  return std::nullopt;
}

std::optional<Breach> VerdictIntake::end() {
  if (isEnded) return Breach{"a list of records that ends twice"};
  isEnded = true;
  return std::nullopt;
}

std::variant<records::JunitReport, Breach> takeJunit(protocols::JunitReport::Reader from,
                                                     CaseIntake intake) {
  records::JunitReport report;
  const auto judgement = judgementFrom(from.getStatus(), from.getReason());
  if (!judgement) return Breach{"a status with its reason"};
  report.status = judgement->status;
  report.reason = judgement->reason;
  report.offset = from.getOffset();
  auto& totals = report.totals;
  totals = {from.getCases(),   from.getPassed(), from.getFailed(), from.getErrored(),
            from.getSkipped(), from.getFlaky(),  from.getUnknown()};
  const auto sum = sumOf(
      {totals.passed, totals.failed, totals.errored, totals.skipped, totals.flaky, totals.unknown});
  if (sum != totals.cases || totals.cases > MAX_ELEMENTS)
    return Breach{"totals that do not add up"};
  if (report.status == Status::EMPTY && totals.cases != 0)
    return Breach{"cases of an empty report"};
  if (report.status == Status::OK && totals.cases == 0) return Breach{"a report without a case"};
  const auto findings = findingsFrom(from.getFindings(), Format::JUNIT);
  if (!findings) return Breach{"findings"};
  report.findings = *findings;
  report.claimsMismatch = from.getClaimsMismatch();
  report.green = from.getGreen();
  if (report.green && !mayBeGreen(report)) return Breach{"green against its own totals"};
  report.truncated = from.getTruncated();
  report.foreignElements = from.getForeignElements();
  report.unknownElements = from.getUnknownElements();
  if (report.status != Status::OK) return report;
  if (!intake.isEnded || intake.cases.size() != from.getListed()) {
    return Breach{"a list of cases that is not whole"};
  }
  report.cases = std::move(intake.cases);
  if (const auto breach = compare(report)) return *breach;
  return report;
}

std::variant<records::VerdictsReport, Breach> takeVerdicts(protocols::VerdictsReport::Reader from,
                                                           VerdictIntake intake) {
  records::VerdictsReport report;
  const auto judgement = judgementFrom(from.getStatus(), from.getReason());
  if (!judgement) return Breach{"a status with its reason"};
  report.status = judgement->status;
  report.reason = judgement->reason;
  report.line = from.getLine();
  report.records = from.getRecords();
  report.outcomes = {from.getPassed(), from.getFailed(), from.getErrored(), from.getSkipped()};
  const auto sum =
      sumOf({from.getPassed(), from.getFailed(), from.getErrored(), from.getSkipped()});
  if (sum != report.records || report.records > MAX_LINES)
    return Breach{"totals that do not add up"};
  if (report.status == Status::EMPTY && report.records != 0)
    return Breach{"records of an empty file"};
  if (report.status == Status::OK && report.records == 0) return Breach{"a file without a record"};
  const bool hasRun = from.getRun().size() != 0;
  if (!takeBytes(from.getRun(), hasRun || report.status == Status::OK, report.run)) {
    return Breach{"a run"};
  }
  const auto findings = findingsFrom(from.getFindings(), Format::VERDICTS);
  if (!findings) return Breach{"findings"};
  report.findings = *findings;
  report.tamper = from.getTamper();
  report.green = from.getGreen();
  if (report.green && !mayBeGreen(report)) return Breach{"green against its own totals"};
  report.truncated = from.getTruncated();
  if (report.status != Status::OK) return report;
  if (!intake.isEnded || intake.list.size() != from.getListed()) {
    return Breach{"a list of records that is not whole"};
  }
  report.list = std::move(intake.list);
  if (const auto breach = compare(report)) return *breach;
  return report;
}

namespace {

std::variant<records::SourceCoverage, Breach> takeSource(
    protocols::CoverageReport::Source::Reader from, std::size_t& room) {
  records::SourceCoverage result;
  auto name = textFrom(from.getSource(), protocols::MAX_SOURCE_NAME);
  if (!name) return Breach{"the name of a source"};
  result.source = std::move(*name);
  const auto answer = codeFrom(from.getAnswer(), Coverage::CONTRADICTORY);
  if (!answer) return Breach{"the answer of a source"};
  result.answer = *answer;
  if (from.getGaps().size() > room) return Breach{"too many gaps"};
  room -= from.getGaps().size();
  for (const auto gap : from.getGaps()) {
    const auto why = findingFrom(gap.getWhy(), Format::COVERAGE);
    if (!why) return Breach{"why a gap is one"};
    if (!isInteger(gap.getFromMs()) || !isInteger(gap.getToMs())) return Breach{"a time"};
    result.gaps.push_back({{gap.getFromMs(), gap.getToMs()}, *why});
  }
  if (result.answer == Coverage::COMPLETE && !result.gaps.empty()) {
    return Breach{"a complete source with gaps"};
  }
  result.dropped = from.getDropped();
  result.restarts = from.getRestarts();
  if (result.restarts > MAX_LINES) return Breach{"more restarts than lines"};
  return result;
}

}  // namespace

std::variant<records::CoverageReport, Breach> takeCoverage(protocols::CoverageReport::Reader from) {
  records::CoverageReport report;
  const auto judgement = judgementFrom(from.getStatus(), from.getReason());
  if (!judgement) return Breach{"a status with its reason"};
  report.status = judgement->status;
  report.reason = judgement->reason;
  report.line = from.getLine();
  const auto answer = codeFrom(from.getAnswer(), Coverage::CONTRADICTORY);
  if (!answer) return Breach{"an answer"};
  report.answer = *answer;
  if (from.getSources().size() > protocols::MAX_SOURCES) return Breach{"too many sources"};
  std::size_t room = protocols::MAX_GAPS;
  std::set<std::string> names;
  Coverage worst = Coverage::COMPLETE;
  for (const auto source : from.getSources()) {
    auto taken = takeSource(source, room);
    if (const auto* breach = std::get_if<Breach>(&taken)) return *breach;
    auto& one = std::get<records::SourceCoverage>(taken);
    if (!names.insert(one.source).second) return Breach{"a source that is there twice"};
    worst = std::max(worst, one.answer);
    report.sources.push_back(std::move(one));
  }
  const auto findings = findingsFrom(from.getFindings(), Format::COVERAGE);
  if (!findings) return Breach{"findings"};
  report.findings = *findings;
  report.truncated = from.getTruncated();
  // What the whole file is found guilty of may make it worse than each source, never better.
  if (report.answer < worst) return Breach{"an answer better than that of a source"};
  if (report.status != Status::OK) report.sources.clear();
  if (report.status == Status::OK && report.sources.empty())
    return Breach{"a file without a source"};
  const bool isUnreadable = report.status == Status::UNPARSABLE || report.status == Status::REFUSED;
  if (isUnreadable && report.answer != Coverage::CONTRADICTORY) {
    return Breach{"an answer that does not go with the status"};
  }
  if (report.status == Status::EMPTY && report.answer != Coverage::INCOMPLETE) {
    return Breach{"an answer that does not go with the status"};
  }
  return report;
}

}  // namespace cordon::cli
