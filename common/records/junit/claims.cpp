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

void SuiteCount::add(CaseOutcome outcome) {
  ++tests;
  if (outcome == CaseOutcome::FAILED) ++failed;
  if (outcome == CaseOutcome::ERRORED) ++errored;
  if (outcome == CaseOutcome::SKIPPED) ++skipped;
}

SuiteCount& SuiteCount::operator+=(const SuiteCount& inner) {
  tests += inner.tests;
  failed += inner.failed;
  errored += inner.errored;
  skipped += inner.skipped;
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
  // Producers that tell disabled cases from skipped ones count them apart.
  std::optional<std::uint64_t> notRun = skipped;
  if (disabled) {
    const std::uint64_t other = skipped.value_or(0);
    notRun = *disabled > LARGEST - other ? LARGEST : *disabled + other;
  }
  return differs(tests, count.tests) || differs(failures, count.failed) ||
         differs(errors, count.errored) || differs(notRun, count.skipped);
}

bool SuiteClaims::exceeds(const SuiteCount& count) const {
  return failures.value_or(0) > count.failed || errors.value_or(0) > count.errored;
}

}  // namespace cordon::records
