// What is made of a whole file of watermarks: watermarks.h and coverage-ledger.h in one.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "common/records/coverage/coverage-ledger.h"
#include "common/records/coverage/watermarks.h"

namespace cordon::records {

class CoverageReader {
 public:
  CoverageReader() : lines([this](const Watermark& mark) { return ledger.add(mark); }) {}

  // Any pieces: the result does not depend on them. False once no further byte can change it.
  bool feed(std::span<const std::byte> bytes) { return lines.feed(bytes); }

  // A file that is UNPARSABLE or REFUSED is CONTRADICTORY, and nothing in it counts.
  [[nodiscard]] CoverageReport finish(const std::optional<Window>& asked) const;

 private:
  CoverageLedger ledger;
  WatermarksReader lines;
};

}  // namespace cordon::records
