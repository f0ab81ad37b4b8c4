#include "services/cli/read/json-view.h"

#include <cstddef>

#include <nlohmann/json.hpp>

namespace cordon::cli {
namespace {

using Json = nlohmann::ordered_json;

Json listOf(const records::Findings& findings) {
  Json list = Json::array();
  for (std::size_t i = 0; i < records::FINDING_COUNT; ++i) {
    const auto finding = static_cast<records::Finding>(i);
    if (findings.has(finding)) list.push_back(records::nameOf(finding));
  }
  return list;
}

std::string print(const Json& object) {
  constexpr int ONE_LINE = -1;
  constexpr bool ASCII = true;
  return object.dump(ONE_LINE, ' ', ASCII) + '\n';
}

}  // namespace

std::string_view nameOf(records::CaseOutcome outcome) {
  switch (outcome) {
    case records::CaseOutcome::PASSED:
      return "passed";
    case records::CaseOutcome::SKIPPED:
      return "skipped";
    case records::CaseOutcome::FLAKY:
      return "flaky";
    case records::CaseOutcome::UNKNOWN:
      return "unknown";
    case records::CaseOutcome::FAILED:
      return "failed";
    case records::CaseOutcome::ERRORED:
      return "errored";
  }
  return "invalid";
}

std::string_view nameOf(records::VerdictOutcome outcome) {
  switch (outcome) {
    case records::VerdictOutcome::PASS:
      return "pass";
    case records::VerdictOutcome::FAIL:
      return "fail";
    case records::VerdictOutcome::ERROR:
      return "error";
    case records::VerdictOutcome::SKIP:
      return "skip";
  }
  return "invalid";
}

std::string_view nameOf(records::Coverage answer) {
  switch (answer) {
    case records::Coverage::COMPLETE:
      return "complete";
    case records::Coverage::INCOMPLETE:
      return "incomplete";
    case records::Coverage::CONTRADICTORY:
      return "contradictory";
  }
  return "invalid";
}

std::string toJson(const records::JunitReport& report) {
  const auto& totals = report.totals;
  Json cases = Json::array();
  for (const auto& one : report.cases) {
    cases.push_back({{"suite", one.suite},
                     {"class", one.className},
                     {"name", one.name},
                     {"outcome", nameOf(one.outcome)},
                     {"attempts", one.attempts}});
  }
  return print({{"status", records::nameOf(report.status)},
                {"reason", records::nameOf(report.reason)},
                {"totals",
                 {{"cases", totals.cases},
                  {"passed", totals.passed},
                  {"failed", totals.failed},
                  {"errored", totals.errored},
                  {"skipped", totals.skipped},
                  {"flaky", totals.flaky},
                  {"unknown", totals.unknown}}},
                {"green", report.green},
                {"claims_mismatch", report.claimsMismatch},
                {"findings", listOf(report.findings)},
                {"truncated", report.truncated},
                {"cases", std::move(cases)}});
}

std::string toJson(const records::VerdictsReport& report) {
  Json outcomes = Json::object();
  for (std::size_t i = 0; i < report.outcomes.size(); ++i) {
    outcomes[std::string(nameOf(static_cast<records::VerdictOutcome>(i)))] = report.outcomes[i];
  }
  return print({{"status", records::nameOf(report.status)},
                {"reason", records::nameOf(report.reason)},
                {"records", report.records},
                {"outcomes", std::move(outcomes)},
                {"tamper", report.tamper},
                {"green", report.green},
                {"findings", listOf(report.findings)},
                {"truncated", report.truncated}});
}

std::string toJson(const records::CoverageReport& report) {
  Json sources = Json::array();
  for (const auto& source : report.sources) {
    Json gaps = Json::array();
    for (const auto& gap : source.gaps) {
      gaps.push_back({{"from_ms", gap.window.fromMs},
                      {"to_ms", gap.window.toMs},
                      {"why", records::nameOf(gap.why)}});
    }
    sources.push_back({{"source", source.source},
                       {"answer", nameOf(source.answer)},
                       {"gaps", std::move(gaps)},
                       {"dropped", source.dropped},
                       {"restarts", source.restarts}});
  }
  return print({{"status", records::nameOf(report.status)},
                {"reason", records::nameOf(report.reason)},
                {"answer", nameOf(report.answer)},
                {"sources", std::move(sources)},
                {"findings", listOf(report.findings)}});
}

}  // namespace cordon::cli
