// The names that JUnit reports are made of. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/records/junit/junit.h"

namespace cordon::records {

// Elements first, in the order of wordOf()'s table; what is only an attribute follows.
enum class Word : std::uint8_t {
  OTHER,
  TESTSUITES,
  TESTSUITE,
  TESTCASE,
  FAILURE,
  ERROR,
  SKIPPED,  // an attribute of suites too
  FLAKY_FAILURE,
  FLAKY_ERROR,
  RERUN_FAILURE,
  RERUN_ERROR,
  SYSTEM_OUT,
  SYSTEM_ERR,
  PROPERTIES,
  PROPERTY,
  STACK_TRACE,
  NAME,
  CLASSNAME,
  STATUS,
  RESULT,
  TESTS,
  FAILURES,
  ERRORS,
  DISABLED,
  MESSAGE,
  // Attributes that producers write and nobody here reads.
  TYPE,
  TIME,
  TIMESTAMP,
  HOSTNAME,
  FILE,
  LINE,
  ID,
  PACKAGE,
  GROUP,
  ASSERTIONS,
  VALUE,
  VERSION,
  VALUE_PARAM,
  TYPE_PARAM,
  FLAKES,
  SKIPS,
  RUN,
  RANDOM_SEED,
};
inline constexpr std::size_t WORD_COUNT = static_cast<std::size_t>(Word::RANDOM_SEED) + 1;

// Of a name without namespace.
Word wordOf(std::string_view name);

inline bool isElement(Word word) {
  return word >= Word::TESTSUITES && word <= Word::STACK_TRACE;
}
inline bool isResult(Word word) {
  return word >= Word::FAILURE && word <= Word::RERUN_ERROR;
}

// What a result element is called, ASCII case ignored: `<Failure>` must not pass for nothing.
// OTHER where it is none.
Word resultWordOf(std::string_view localName);

bool equalsIgnoringCase(std::string_view text, std::string_view lower);

// Of a `status` or `result` attribute's value.
CaseOutcome outcomeOfStatus(std::string_view value);
// Of a result element.
CaseOutcome outcomeOfResult(Word word);

}  // namespace cordon::records
