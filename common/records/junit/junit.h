// What is made of a JUnit XML report: the types, without the reader (reader.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/records/report.h"

namespace cordon::records {

// In the order of worst-of: of two outcomes of one case the later one here holds.
enum class CaseOutcome : std::uint8_t { PASSED, SKIPPED, FLAKY, UNKNOWN, FAILED, ERRORED };

// Strings are bytes of the report's choosing, UTF-8 without what XML 1.0 forbids, cut to the caps.
struct JunitCase {
  std::vector<std::string> suite = {};  // names of the testsuite elements around it, outer to inner
  std::string className = {};
  std::string name = {};
  CaseOutcome outcome = CaseOutcome::PASSED;
  std::uint64_t attempts = 1;   // elements merged into this key, flaky and rerun children added
  std::string text = {};        // messages and texts of its results, as far as they are kept
  bool truncated = false;       // something of it was cut; then:
  std::uint64_t textBytes = 0;  // of all its text, kept or not
  std::array<std::uint8_t, 32> textSha256{};  // of all its text, in document order
  friend bool operator==(const JunitCase&, const JunitCase&) = default;
};

struct JunitTotals {
  std::uint64_t cases = 0;  // merged keys; the six below add up to it
  std::uint64_t passed = 0;
  std::uint64_t failed = 0;
  std::uint64_t errored = 0;
  std::uint64_t skipped = 0;
  std::uint64_t flaky = 0;
  std::uint64_t unknown = 0;
  friend bool operator==(const JunitTotals&, const JunitTotals&) = default;
};

struct JunitReport {
  Status status = Status::EMPTY;
  Reason reason = Reason::NONE;
  // Bytes before the violation where there is a reason. Of markup that may not follow the root: the
  // bytes before its end.
  std::uint64_t offset = 0;
  JunitTotals totals = {};  // of what came before the violation where there is a reason
  bool green = false;
  bool claimsMismatch = false;
  Findings findings = {};
  bool truncated = false;  // the list below stops before its end, or text was cut
  std::vector<JunitCase> cases = {};
  std::uint64_t foreignElements = 0;
  std::uint64_t unknownElements = 0;
  friend bool operator==(const JunitReport&, const JunitReport&) = default;
};

}  // namespace cordon::records
