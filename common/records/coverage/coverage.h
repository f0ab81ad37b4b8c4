// Whether a window of observation was covered by a telemetry source: the types, without the reader
// and without the judgement (watermarks.h, coverage-ledger.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/records/report.h"

namespace cordon::records {

// Half-open, in milliseconds of the source's clock: a claim of the guest.
struct Window {
  std::int64_t fromMs = 0;
  std::int64_t toMs = 0;
  friend bool operator==(const Window&, const Window&) = default;
};

// One line: what a source said when it was asked.
struct Watermark {
  std::string source = {};
  std::int64_t epoch = 0;  // rises when the source starts again
  std::int64_t seq = 0;    // 1..2^53-1, starts again with the epoch
  Window window = {};      // since the record before
  std::int64_t events = 0;
  std::int64_t bytes = 0;
  std::int64_t dropped = 0;  // since the record before
  std::int64_t backlog = 0;  // seen, not yet handed on
  std::int64_t aliveSinceMs = 0;
  bool final = false;
};

// In the order of worst-of. Only COMPLETE lets a detection goal be scored.
enum class Coverage : std::uint8_t { COMPLETE, INCOMPLETE, CONTRADICTORY };

struct Gap {
  Window window = {};
  Finding why = Finding::HOLE;
};

struct SourceCoverage {
  std::string source = {};
  Coverage answer = Coverage::INCOMPLETE;
  std::vector<Gap> gaps = {};  // in the order of time
  std::uint64_t dropped = 0;
  std::uint64_t restarts = 0;
};

struct CoverageReport {
  Status status = Status::EMPTY;
  Reason reason = Reason::NONE;
  std::uint64_t line = 0;  // of the violation, from 1
  Coverage answer = Coverage::INCOMPLETE;
  std::vector<SourceCoverage> sources = {};  // in the order of their first record
  Findings findings = {};
  bool truncated = false;  // a list of gaps stops before its end
};

}  // namespace cordon::records
