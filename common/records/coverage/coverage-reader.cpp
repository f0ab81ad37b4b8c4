#include "common/records/coverage/coverage-reader.h"

namespace cordon::records {

CoverageReport CoverageReader::finish(const std::optional<Window>& asked) const {
  const LinesEnd end = lines.end();
  if (end.reason == Reason::NONE) return ledger.answer(asked, end.tornTail);
  CoverageReport report;
  report.status = end.status;
  report.reason = end.reason;
  report.line = end.line;
  report.answer = Coverage::CONTRADICTORY;
  return report;
}

}  // namespace cordon::records
