#include "common/records/report.h"

namespace cordon::records {

std::string_view nameOf(Status status) {
  switch (status) {
    case Status::OK:
      return "ok";
    case Status::EMPTY:
      return "empty";
    case Status::MISSING:
      return "missing";
    case Status::UNPARSABLE:
      return "unparsable";
    case Status::REFUSED:
      return "refused";
  }
  return "invalid";
}

std::string_view nameOf(Reason reason) {
  switch (reason) {
    case Reason::NONE:
      return "";
    case Reason::NOT_WELL_FORMED:
      return "not-well-formed";
    case Reason::NOT_UTF8:
      return "not-utf8";
    case Reason::ILLEGAL_CHARACTER:
      return "illegal-character";
    case Reason::ILLEGAL_REFERENCE:
      return "illegal-reference";
    case Reason::SECOND_ROOT:
      return "second-root";
    case Reason::NO_ROOT:
      return "no-root";
    case Reason::DOCTYPE:
      return "doctype";
    case Reason::ENCODING:
      return "encoding";
    case Reason::XML_VERSION:
      return "xml-version";
    case Reason::FOREIGN_ROOT:
      return "foreign-root";
    case Reason::TOO_DEEP:
      return "too-deep";
    case Reason::TOO_MANY_BYTES:
      return "too-many-bytes";
    case Reason::TOO_MANY_ELEMENTS:
      return "too-many-elements";
    case Reason::TOO_MANY_ATTRIBUTES:
      return "too-many-attributes";
    case Reason::TOO_MANY_NAMESPACES:
      return "too-many-namespaces";
    case Reason::TOO_MANY_NAMES:
      return "too-many-names";
    case Reason::TOO_MANY_CASES:
      return "too-many-cases";
    case Reason::TOKEN_TOO_LONG:
      return "token-too-long";
    case Reason::OUT_OF_MEMORY:
      return "out-of-memory";
    case Reason::OUT_OF_TIME:
      return "out-of-time";
    case Reason::NOT_JSON:
      return "not-json";
    case Reason::BYTE_ORDER_MARK:
      return "byte-order-mark";
    case Reason::NUL_BYTE:
      return "nul-byte";
    case Reason::CARRIAGE_RETURN:
      return "carriage-return";
    case Reason::DUPLICATE_KEY:
      return "duplicate-key";
    case Reason::NOT_INTEGER:
      return "not-integer";
    case Reason::INTEGER_RANGE:
      return "integer-range";
    case Reason::UNKNOWN_KEY:
      return "unknown-key";
    case Reason::MISSING_KEY:
      return "missing-key";
    case Reason::WRONG_TYPE:
      return "wrong-type";
    case Reason::WRONG_VALUE:
      return "wrong-value";
    case Reason::CONTROL_CHARACTER:
      return "control-character";
    case Reason::LINE_TOO_LONG:
      return "line-too-long";
    case Reason::TOO_MANY_LINES:
      return "too-many-lines";
    case Reason::TEXT_TOO_LONG:
      return "text-too-long";
    case Reason::TOO_MANY_SOURCES:
      return "too-many-sources";
    case Reason::NOT_REGULAR:
      return "not-regular";
    case Reason::NOT_READABLE:
      return "not-readable";
    case Reason::READER_LOST:
      return "reader-lost";
  }
  return "invalid";
}

std::string_view nameOf(Finding finding) {
  switch (finding) {
    case Finding::NAMELESS_CASE:
      return "nameless-case";
    case Finding::NESTED_CASE:
      return "nested-case";
    case Finding::RESULT_OUTSIDE_CASE:
      return "result-outside-case";
    case Finding::RESULT_IN_OUTPUT:
      return "result-in-output";
    case Finding::FOREIGN_CONTENT:
      return "foreign-content";
    case Finding::FOREIGN_RESULT:
      return "foreign-result";
    case Finding::BAD_CLAIM:
      return "bad-claim";
    case Finding::CLAIM_MISMATCH:
      return "claim-mismatch";
    case Finding::CONTRADICTORY_RESULTS:
      return "contradictory-results";
    case Finding::REPEATED_CASE:
      return "repeated-case";
    case Finding::UNKNOWN_STATUS:
      return "unknown-status";
    case Finding::TORN_TAIL:
      return "torn-tail";
    case Finding::SEQUENCE_GAP:
      return "sequence-gap";
    case Finding::SEQUENCE_REPEATED:
      return "sequence-repeated";
    case Finding::SEQUENCE_BACKWARD:
      return "sequence-backward";
    case Finding::FOREIGN_RUN:
      return "foreign-run";
    case Finding::HOLE:
      return "hole";
    case Finding::MISSING_SEQUENCE:
      return "missing-sequence";
    case Finding::DROPPED_EVENTS:
      return "dropped-events";
    case Finding::RESTARTED:
      return "restarted";
    case Finding::STARTED_LATE:
      return "started-late";
    case Finding::BACKLOG_LEFT:
      return "backlog-left";
    case Finding::BEYOND_RECORDS:
      return "beyond-records";
    case Finding::OVERLAPPING_WINDOWS:
      return "overlapping-windows";
    case Finding::INVERTED_WINDOW:
      return "inverted-window";
    case Finding::EVENTS_WITHOUT_WINDOW:
      return "events-without-window";
    case Finding::EPOCH_BACKWARD:
      return "epoch-backward";
    case Finding::START_MOVED:
      return "start-moved";
    case Finding::AFTER_FINAL:
      return "after-final";
    case Finding::CLOCK_STEP:
      return "clock-step";
    case Finding::SILENT:
      return "silent";
    case Finding::REWRITTEN:
      return "rewritten";
    case Finding::AHEAD_OF_HOST:
      return "ahead-of-host";
  }
  return "invalid";
}

}  // namespace cordon::records
