#include "common/records/coverage/testing/json.h"

#include <array>
#include <string_view>

#include <fmt/format.h>

#include "common/records/lines/testing/fixtures.h"

namespace cordon::records::testing {
namespace {

std::string_view nameOf(Coverage answer) {
  constexpr std::array<std::string_view, 3> NAMES{"complete", "incomplete", "contradictory"};
  return NAMES.at(static_cast<std::size_t>(answer));
}

std::string gapsOf(const SourceCoverage& source) {
  std::string out;
  for (const Gap& gap : source.gaps) {
    out += fmt::format(R"({}{{"from_ms":{},"to_ms":{},"why":"{}"}})", out.empty() ? "" : ",",
                       gap.window.fromMs, gap.window.toMs, records::nameOf(gap.why));
  }
  return out;
}

}  // namespace

std::string jsonOf(const CoverageReport& report) {
  std::string sources;
  for (const SourceCoverage& source : report.sources) {
    sources +=
        fmt::format(R"({}{{"source":{},"answer":"{}","gaps":[{}],"dropped":{},"restarts":{}}})",
                    sources.empty() ? "" : ",", inQuotes(source.source), nameOf(source.answer),
                    gapsOf(source), source.dropped, source.restarts);
  }
  return fmt::format(
      R"({{"status":"{}","reason":"{}","answer":"{}","sources":[{}],"findings":{}}})",
      records::nameOf(report.status), records::nameOf(report.reason), nameOf(report.answer),
      sources, listOf(report.findings));
}

}  // namespace cordon::records::testing
