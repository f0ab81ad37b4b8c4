#include "common/records/junit/words.h"

#include <algorithm>
#include <array>

namespace cordon::records {

namespace {

// In the order of Word, from TESTSUITES on.
constexpr std::array<std::string_view, WORD_COUNT - 1> NAMES{
    "testsuites",   "testsuite",  "testcase",     "failure",    "error",      "skipped",
    "flakyFailure", "flakyError", "rerunFailure", "rerunError", "system-out", "system-err",
    "properties",   "property",   "stackTrace",   "name",       "classname",  "status",
    "result",       "tests",      "failures",     "errors",     "disabled",   "message",
    "type",         "time",       "timestamp",    "hostname",   "file",       "line",
    "id",           "package",    "group",        "assertions", "value",      "version",
    "value_param",  "type_param", "flakes",       "skips",      "run",        "random_seed"};

constexpr std::size_t SLOTS = 256;

constexpr std::size_t slotOf(std::string_view name) {
  const auto at = [name](std::size_t i) -> std::size_t {
    return static_cast<unsigned char>(name[i]);
  };
  return (name.size() * 37 + at(0) * 5 + at(name.size() / 2) * 11 + at(name.size() - 1) * 3) %
         SLOTS;
}

// Open addressing; 0 is an empty slot, else an index of Word.
constexpr std::array<std::uint8_t, SLOTS> makeTable() {
  std::array<std::uint8_t, SLOTS> table{};
  for (std::size_t i = 0; i < NAMES.size(); ++i) {
    std::size_t slot = slotOf(NAMES[i]);
    while (table[slot] != 0) slot = (slot + 1) % SLOTS;
    table[slot] = static_cast<std::uint8_t>(i + 1);
  }
  return table;
}

constexpr std::array<std::uint8_t, SLOTS> TABLE = makeTable();

template <std::size_t N>
bool among(std::string_view value, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(),
                     [value](std::string_view word) { return equalsIgnoringCase(value, word); });
}

}  // namespace

Word wordOf(std::string_view name) {
  if (name.empty()) return Word::OTHER;
  for (std::size_t slot = slotOf(name); TABLE[slot] != 0; slot = (slot + 1) % SLOTS) {
    if (NAMES[TABLE[slot] - 1u] == name) return static_cast<Word>(TABLE[slot]);
  }
  return Word::OTHER;
}

Word resultWordOf(std::string_view localName) {
  constexpr auto FIRST = static_cast<std::size_t>(Word::FAILURE);
  constexpr auto LAST = static_cast<std::size_t>(Word::RERUN_ERROR);
  for (std::size_t word = FIRST; word <= LAST; ++word) {
    const std::string_view name = NAMES[word - 1];
    if (name.size() != localName.size()) continue;
    const auto lower = [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    if (std::equal(name.begin(), name.end(), localName.begin(),
                   [lower](char a, char b) { return lower(a) == lower(b); })) {
      return static_cast<Word>(word);
    }
  }
  return Word::OTHER;
}

bool equalsIgnoringCase(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

CaseOutcome outcomeOfStatus(std::string_view value) {
  constexpr std::array<std::string_view, 6> PASS{"run",  "completed", "passed",
                                                 "pass", "success",   "ok"};
  constexpr std::array<std::string_view, 5> SKIP{"notrun", "disabled", "skipped", "suppressed",
                                                 "ignored"};
  constexpr std::array<std::string_view, 2> FAIL{"fail", "failed"};
  constexpr std::array<std::string_view, 2> ERROR{"error", "errored"};
  if (among(value, PASS)) return CaseOutcome::PASSED;
  if (among(value, SKIP)) return CaseOutcome::SKIPPED;
  if (among(value, FAIL)) return CaseOutcome::FAILED;
  if (among(value, ERROR)) return CaseOutcome::ERRORED;
  return CaseOutcome::UNKNOWN;
}

CaseOutcome outcomeOfResult(Word word) {
  switch (word) {
    case Word::FAILURE:
    case Word::RERUN_FAILURE:
      return CaseOutcome::FAILED;
    case Word::ERROR:
    case Word::RERUN_ERROR:
      return CaseOutcome::ERRORED;
    case Word::SKIPPED:
      return CaseOutcome::SKIPPED;
    case Word::FLAKY_FAILURE:
    case Word::FLAKY_ERROR:
      return CaseOutcome::FLAKY;
    default:
      return CaseOutcome::UNKNOWN;
  }
}

}  // namespace cordon::records
