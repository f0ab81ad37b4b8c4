// What every reader of common/records says of a document: a status, one reason where it is not
// read, and findings where it is. Codes only; texts are made where they are shown.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cordon::records {

enum class Status : std::uint8_t {
  OK,
  EMPTY,       // nothing in it to judge
  MISSING,     // no such file: said by who opens it, never by a reader
  UNPARSABLE,  // not a document of its format at all
  REFUSED,     // one that we do not read: over a cap, outside its schema, or of another dialect
};

// Why a document is not OK. The first violation in byte order decides.
enum class Reason : std::uint8_t {
  NONE,
  // JUnit, unparsable
  NOT_WELL_FORMED,
  NOT_UTF8,  // JSON Lines too
  ILLEGAL_CHARACTER,
  ILLEGAL_REFERENCE,
  SECOND_ROOT,
  NO_ROOT,
  // JUnit, refused
  DOCTYPE,
  ENCODING,
  XML_VERSION,
  FOREIGN_ROOT,
  TOO_DEEP,  // JSON Lines too: unparsable there
  TOO_MANY_BYTES,
  TOO_MANY_ELEMENTS,
  TOO_MANY_ATTRIBUTES,
  TOO_MANY_NAMESPACES,
  TOO_MANY_NAMES,
  TOO_MANY_CASES,
  TOKEN_TOO_LONG,
  OUT_OF_MEMORY,  // of the document's own budget
  OUT_OF_TIME,    // of processor time
  // JSON Lines, unparsable
  NOT_JSON,
  BYTE_ORDER_MARK,
  NUL_BYTE,
  CARRIAGE_RETURN,
  DUPLICATE_KEY,
  NOT_INTEGER,
  INTEGER_RANGE,
  // JSON Lines, refused
  UNKNOWN_KEY,
  MISSING_KEY,
  WRONG_TYPE,
  WRONG_VALUE,
  CONTROL_CHARACTER,
  LINE_TOO_LONG,
  TOO_MANY_LINES,
  TEXT_TOO_LONG,
  TOO_MANY_SOURCES,
  // said by who opens the file or starts the reader
  NOT_REGULAR,
  NOT_READABLE,
  READER_LOST,
};

// What is worth telling of a document that was read. Which of them spoil a verdict is said at each
// format.
enum class Finding : std::uint8_t {
  // JUnit
  NAMELESS_CASE,
  NESTED_CASE,
  RESULT_OUTSIDE_CASE,
  RESULT_IN_OUTPUT,  // a result element inside system-out or system-err
  FOREIGN_CONTENT,
  FOREIGN_RESULT,
  BAD_CLAIM,       // a count that is no natural number
  CLAIM_MISMATCH,  // a count that differs from what was counted
  CONTRADICTORY_RESULTS,
  REPEATED_CASE,
  UNKNOWN_STATUS,
  // JSON Lines
  TORN_TAIL,
  // verdicts
  SEQUENCE_GAP,
  SEQUENCE_REPEATED,
  SEQUENCE_BACKWARD,
  FOREIGN_RUN,  // records of more than one run in one file
  // coverage
  HOLE,
  MISSING_SEQUENCE,
  DROPPED_EVENTS,
  RESTARTED,
  STARTED_LATE,
  BACKLOG_LEFT,
  BEYOND_RECORDS,
  OVERLAPPING_WINDOWS,
  INVERTED_WINDOW,
  EVENTS_WITHOUT_WINDOW,
  EPOCH_BACKWARD,
  START_MOVED,
  AFTER_FINAL,
  CLOCK_STEP,
  // coverage, of a poller
  SILENT,
  REWRITTEN,
  AHEAD_OF_HOST,
};
inline constexpr std::size_t FINDING_COUNT = static_cast<std::size_t>(Finding::AHEAD_OF_HOST) + 1;

class Findings {
 public:
  void add(Finding finding) { bits.set(static_cast<std::size_t>(finding)); }
  void add(const Findings& more) { bits |= more.bits; }
  [[nodiscard]] bool has(Finding finding) const {
    return bits.test(static_cast<std::size_t>(finding));
  }
  [[nodiscard]] bool empty() const { return bits.none(); }
  friend bool operator==(const Findings&, const Findings&) = default;

 private:
  std::bitset<FINDING_COUNT> bits;
};

// Lower case with dashes, e.g. "not-well-formed"; NONE is "".
std::string_view nameOf(Status status);
std::string_view nameOf(Reason reason);
std::string_view nameOf(Finding finding);

}  // namespace cordon::records
