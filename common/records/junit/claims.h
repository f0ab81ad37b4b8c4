// What suites say of themselves in numbers, against what was counted in them. Internal.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/records/junit/junit.h"
#include "common/records/junit/words.h"

namespace cordon::records {

// Elements of one suite, those of suites in it included, each with one outcome.
struct SuiteCount {
  std::uint64_t tests = 0;
  std::uint64_t failed = 0;
  std::uint64_t errored = 0;
  std::uint64_t skipped = 0;
  std::uint64_t skippedByStatus = 0;  // of the skipped, those without a `skipped` child

  void add(CaseOutcome outcome, bool saysSkipped);
  SuiteCount& operator+=(const SuiteCount& inner);
};

class SuiteClaims {
 public:
  // An attribute of the suite. False where it is a claim but no natural number (ASCII digits).
  bool read(Word attribute, std::string_view value);

  [[nodiscard]] bool contradicts(const SuiteCount& count) const;
  // Whether more failures or errors are claimed than there are.
  [[nodiscard]] bool exceeds(const SuiteCount& count) const;

 private:
  [[nodiscard]] bool contradictsSkipped(const SuiteCount& count) const;

  std::optional<std::uint64_t> tests, failures, errors, skipped, disabled;
};

}  // namespace cordon::records
