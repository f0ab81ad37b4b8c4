// Was a window of observation covered by the sources that were to observe it? Watermarks go in as
// they arrive, in the order of the file; windows may be asked for at any time.
//
// Each source is judged by itself, and all together are as good as the worst. The question is the
// window asked for; without one it is, for each source, from its first `from` to its last `to`.
// An empty question (all windows empty) is covered.
//
// CONTRADICTORY, wherever in time the record stands: no honest source says this.
//   INVERTED_WINDOW        from > to
//   EVENTS_WITHOUT_WINDOW  from = to, and events
//   OVERLAPPING_WINDOWS    a window that shares time with an earlier one (an empty one shares none)
//   SEQUENCE_REPEATED, SEQUENCE_BACKWARD  a `seq` that is, or is below, the highest of its epoch
//   EPOCH_BACKWARD         an epoch below the highest so far
//   START_MOVED            another `alive_since_ms` than the epoch's first record had
//   AFTER_FINAL            anything after a record with `final`
// INCOMPLETE, where a record that intersects the question says so:
//   DROPPED_EVENTS         dropped > 0
//   RESTARTED              the first record of a new epoch
//   MISSING_SEQUENCE       a `seq` more than one above the one before; the first of an epoch is 1
//   STARTED_LATE           alive_since_ms > from; the gap is from `from` until then
//   CLOCK_STEP             a window that begins before the latest `to` so far and overlaps nothing:
//                          the source's clock was set back
//   BACKLOG_LEFT           the source's last record, where its backlog is not 0
// or where time of the question is in no window:
//   HOLE                   between two windows
//   BEYOND_RECORDS         before the first or after the last
// or, whatever the question:
//   TORN_TAIL              the file's last line was cut off, and the source had not said `final`
// A window intersects a question that it shares time with; an empty one, that it lies in or
// touches; an inverted one, none but the one for all records.
//
// Gaps (HOLE, BEYOND_RECORDS, STARTED_LATE) are exact and in the order of time; neighbours of one
// reason are one gap. `dropped` (which stops at 2^64-1) and `restarts` count the records that
// intersect. A contradictory source has them too, for what they are worth.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/records/coverage/coverage.h"
#include "common/records/coverage/source-history.h"

namespace cordon::records {

inline constexpr std::size_t MAX_SOURCES = 1024;
inline constexpr std::size_t MAX_GAPS = 4096;  // of all sources of one report

class CoverageLedger {
 public:
  // NONE, or TOO_MANY_SOURCES, and then the record is not taken. About 110 bytes are kept of a
  // record at most, and nothing of one that follows its predecessor without a fault.
  Reason add(const Watermark& watermark);

  // Status OK, or EMPTY (INCOMPLETE) before the first record; `asked` has fromMs < toMs.
  [[nodiscard]] CoverageReport answer(const std::optional<Window>& asked,
                                      bool tornTail = false) const;

 private:
  struct Source {
    std::string name;
    SourceHistory history;
  };
  std::vector<Source> sources;  // in the order of their first record
  std::map<std::string, std::size_t, std::less<>> indexes;
};

// The same for records that are there already. More than MAX_SOURCES are REFUSED.
CoverageReport judgeCoverage(std::span<const Watermark> watermarks,
                             const std::optional<Window>& asked);

}  // namespace cordon::records
