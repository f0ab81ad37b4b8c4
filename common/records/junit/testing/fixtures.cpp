#include "common/records/junit/testing/fixtures.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>

namespace cordon::records::testing {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string_view nameOf(CaseOutcome outcome) {
  switch (outcome) {
    case CaseOutcome::PASSED:
      return "passed";
    case CaseOutcome::SKIPPED:
      return "skipped";
    case CaseOutcome::FLAKY:
      return "flaky";
    case CaseOutcome::UNKNOWN:
      return "unknown";
    case CaseOutcome::FAILED:
      return "failed";
    case CaseOutcome::ERRORED:
      return "errored";
  }
  throw std::logic_error("no outcome");
}

}  // namespace

void PrintTo(const JunitFixture& fixture, std::ostream* out) {
  *out << fixture.name;
}

std::vector<JunitFixture> junitFixtures() {
  std::vector<JunitFixture> fixtures;
  std::size_t expectations = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(CORDON_TEST_DATA) / "junit")) {
    fs::path path = entry.path();
    if (path.extension() == ".json") {
      ++expectations;
    } else if (path.extension() == ".xml") {
      std::string bytes = read(path);
      path.replace_extension(".json");
      fixtures.push_back({path.stem(), std::move(bytes), json::parse(read(path))});
    } else {
      throw std::runtime_error("neither report nor expectation: " + path.string());
    }
  }
  if (expectations != fixtures.size()) throw std::runtime_error("an expectation of nothing");
  std::ranges::sort(fixtures, {}, &JunitFixture::name);
  return fixtures;
}

json jsonOf(const JunitTotals& totals) {
  return {{"cases", totals.cases},     {"passed", totals.passed},   {"failed", totals.failed},
          {"errored", totals.errored}, {"skipped", totals.skipped}, {"flaky", totals.flaky},
          {"unknown", totals.unknown}};
}

json jsonOf(const JunitReport& report) {
  json findings = json::array();
  for (std::size_t i = 0; i < FINDING_COUNT; ++i) {
    const auto finding = static_cast<Finding>(i);
    if (report.findings.has(finding)) findings.push_back(records::nameOf(finding));
  }
  json cases = json::array();
  for (const JunitCase& item : report.cases) {
    cases.push_back({{"suite", item.suite},
                     {"class", item.className},
                     {"name", item.name},
                     {"outcome", nameOf(item.outcome)},
                     {"attempts", item.attempts}});
  }
  return {{"status", records::nameOf(report.status)},
          {"reason", records::nameOf(report.reason)},
          {"totals", jsonOf(report.totals)},
          {"green", report.green},
          {"claims_mismatch", report.claimsMismatch},
          {"findings", findings},
          {"truncated", report.truncated},
          {"cases", cases}};
}

JunitReport readWhole(std::string_view text, const JunitLimits& limits) {
  JunitReader reader(limits);
  reader.feed(std::as_bytes(std::span(text)));
  return reader.finish();
}

}  // namespace cordon::records::testing
