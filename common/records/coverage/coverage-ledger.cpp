#include "common/records/coverage/coverage-ledger.h"

#include <algorithm>
#include <utility>

namespace cordon::records {

Reason CoverageLedger::add(const Watermark& watermark) {
  auto index = indexes.find(watermark.source);
  if (index == indexes.end()) {
    if (sources.size() == MAX_SOURCES) return Reason::TOO_MANY_SOURCES;
    index = indexes.emplace(watermark.source, sources.size()).first;
    sources.push_back({watermark.source, {}});
  }
  sources[index->second].history.add(watermark);
  return Reason::NONE;
}

CoverageReport CoverageLedger::answer(const std::optional<Window>& asked, bool tornTail) const {
  CoverageReport report;
  if (tornTail) report.findings.add(Finding::TORN_TAIL);
  if (sources.empty()) return report;
  report.status = Status::OK;
  report.answer = Coverage::COMPLETE;
  std::size_t gapsLeft = MAX_GAPS;
  for (const Source& source : sources) {
    auto judgement = source.history.judge(asked, tornTail, gapsLeft);
    gapsLeft -= judgement.gaps.size();
    report.answer = std::max(report.answer, judgement.answer);
    report.findings.add(judgement.findings);
    report.truncated = report.truncated || judgement.truncated;
    report.sources.push_back({source.name, judgement.answer, std::move(judgement.gaps),
                              judgement.dropped, judgement.restarts});
  }
  return report;
}

CoverageReport judgeCoverage(std::span<const Watermark> watermarks,
                             const std::optional<Window>& asked) {
  CoverageLedger ledger;
  for (const Watermark& watermark : watermarks) {
    const Reason reason = ledger.add(watermark);
    if (reason == Reason::NONE) continue;
    CoverageReport refused;
    refused.status = Status::REFUSED;
    refused.reason = reason;
    refused.answer = Coverage::CONTRADICTORY;
    return refused;
  }
  return ledger.answer(asked);
}

}  // namespace cordon::records
