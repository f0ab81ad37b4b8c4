#include "common/records/junit/claims.h"

#include <limits>

namespace cordon::records {

namespace {

constexpr std::uint64_t LARGEST = std::numeric_limits<std::uint64_t>::max();

// Digits only, as no locale writes them otherwise; a number too large to hold is the largest.
std::optional<std::uint64_t> naturalNumber(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    number = number > (LARGEST - digit) / 10 ? LARGEST : number * 10 + digit;
  }
  return number;
}

bool differs(std::optional<std::uint64_t> claim, std::uint64_t counted) {
  return claim && *claim != counted;
}

}  // namespace

void SuiteCount::add(CaseOutcome outcome, bool saysSkipped) {
  ++tests;
  if (outcome == CaseOutcome::FAILED) ++failed;
  if (outcome == CaseOutcome::ERRORED) ++errored;
  if (outcome == CaseOutcome::SKIPPED) ++skipped;
  if (outcome == CaseOutcome::SKIPPED && !saysSkipped) ++skippedByStatus;
}

SuiteCount& SuiteCount::operator+=(const SuiteCount& inner) {
  tests += inner.tests;
  failed += inner.failed;
  errored += inner.errored;
  skipped += inner.skipped;
  skippedByStatus += inner.skippedByStatus;
  return *this;
}

bool SuiteClaims::read(Word attribute, std::string_view value) {
  std::optional<std::uint64_t>* claim = nullptr;
  switch (attribute) {
    case Word::TESTS:
      claim = &tests;
      break;
    case Word::FAILURES:
      claim = &failures;
      break;
    case Word::ERRORS:
      claim = &errors;
      break;
    case Word::SKIPPED:
      claim = &skipped;
      break;
    case Word::DISABLED:
      claim = &disabled;
      break;
    default:
      return true;
  }
  *claim = naturalNumber(value);
  return claim->has_value();
}

bool SuiteClaims::contradicts(const SuiteCount& count) const {
  return differs(tests, count.tests) || differs(failures, count.failed) ||
         differs(errors, count.errored) || contradictsSkipped(count);
}

// Producers that count disabled cases apart from skipped ones leave them out of `skipped`. And some
// (GoogleTest, at the root) claim the disabled ones only: those have no child that says so.
bool SuiteClaims::contradictsSkipped(const SuiteCount& count) const {
  if (!disabled) return differs(skipped, count.skipped);
  if (!skipped) return *disabled > count.skipped || *disabled < count.skippedByStatus;
  return *skipped > count.skipped || *disabled != count.skipped - *skipped;
}

bool SuiteClaims::exceeds(const SuiteCount& count) const {
  return failures.value_or(0) > count.failed || errors.value_or(0) > count.errored;
}

}  // namespace cordon::records
