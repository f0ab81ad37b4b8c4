// Reads a file of verdict records (JSON Lines): one line
//   {v: 1, run: 32 hex digits, seq, check, goal?, outcome: pass|fail|error|skip, observed_ms,
//    tier: "T3", proof?: {kind, sha256}, detail?}
// with nothing else in it. Rules of a line: common/records/lines/line.h; control characters, as
// escapes, in `detail` alone. `goal` and `check` are bounded by the line.
//
// One file is one producer: its `seq` starts at 1 and rises by one. A number left out is the
// finding SEQUENCE_GAP; one at or below the highest so far is tamper (SEQUENCE_REPEATED: the
// highest itself, SEQUENCE_BACKWARD: below it). A record of another run than the first one's is the
// finding FOREIGN_RUN. Tamper and findings leave the status OK and are never green.
//
// Green: OK, no finding, no tamper, nothing failed or in error, and at least one pass.
//
// A bad line voids the file: the report then holds status, reason and line, and no record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/records/lines/reader.h"
#include "common/records/verdicts/verdicts.h"

namespace cordon::records {

inline constexpr std::size_t MAX_DETAIL_BYTES = 16384;  // UTF-8, escapes resolved
inline constexpr std::size_t MAX_LISTED_VERDICTS = 10'000;
// Of check, goal, detail and proof.kind of all listed records together.
inline constexpr std::size_t MAX_LISTED_VERDICT_BYTES = std::size_t{8} << 20;

class VerdictsReader final : private LineSink {
 public:
  VerdictsReader();
  VerdictsReader(const VerdictsReader&) = delete;
  VerdictsReader& operator=(const VerdictsReader&) = delete;

  // Any pieces: the result does not depend on them. False once no further byte can change it.
  bool feed(std::span<const std::byte> bytes) { return lines.feed(bytes); }

  // Once, at the end of the file.
  VerdictsReport finish();

 private:
  struct Line {
    VerdictRecord record;
    std::array<std::uint8_t, 16> run{};
  };
  struct Table;

  void* beginRecord() override;
  Reason endRecord() override;
  void checkSequence();
  void list();

  LinesReader lines;
  Line line;
  std::uint64_t highest = 0;  // seq
  std::size_t listedBytes = 0;
  VerdictsReport report;
};

}  // namespace cordon::records
