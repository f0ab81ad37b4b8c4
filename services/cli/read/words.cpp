#include "services/cli/read/words.h"

namespace cordon::cli {

using records::Finding;
using records::Reason;

ReasonWords wordsOf(Reason reason) {
  switch (reason) {
    case Reason::NONE:
      return {};
    case Reason::NOT_WELL_FORMED:
      return {"it is not well-formed XML",
              "let the test runner finish writing it; a report cut short looks like this"};
    case Reason::NOT_UTF8:
      return {"it holds bytes that are not UTF-8", "have the producer write UTF-8"};
    case Reason::ILLEGAL_CHARACTER:
      return {"it holds a character that XML forbids",
              "have the producer drop control characters from its output"};
    case Reason::ILLEGAL_REFERENCE:
      return {"it refers to an entity or character that XML does not have",
              "have the producer escape & as &amp;"};
    case Reason::SECOND_ROOT:
      return {"a second document follows the first",
              "write one report to a file; appending makes two"};
    case Reason::NO_ROOT:
      return {"it holds no element", "look at what the producer wrote"};
    case Reason::DOCTYPE:
      return {"it has a DOCTYPE, which is never read", "have the producer leave the DOCTYPE out"};
    case Reason::ENCODING:
      return {"it declares an encoding other than UTF-8", "have the producer write UTF-8"};
    case Reason::XML_VERSION:
      return {"it declares an XML version other than 1.0", "have the producer write XML 1.0"};
    case Reason::FOREIGN_ROOT:
      return {"its root is neither testsuites nor testsuite",
              "give a JUnit report; other formats are not read"};
    case Reason::TOO_DEEP:
      return {"it is nested deeper than is read",
              "look at what the producer wrote: no honest report is"};
    case Reason::TOO_MANY_BYTES:
      return {"it is larger than 512 MiB", "split the report, or write less output into it"};
    case Reason::TOO_MANY_ELEMENTS:
      return {"it has more than 5 million elements", "split the report"};
    case Reason::TOO_MANY_ATTRIBUTES:
      return {"an element has more than 256 attributes", "look at what the producer wrote"};
    case Reason::TOO_MANY_NAMESPACES:
      return {"it declares more than 64 namespaces", "look at what the producer wrote"};
    case Reason::TOO_MANY_NAMES:
      return {"it uses more than 1,024 different names of elements and attributes",
              "look at what the producer wrote"};
    case Reason::TOO_MANY_CASES:
      return {"it has more than a million different cases", "split the report"};
    case Reason::TOKEN_TOO_LONG:
      return {"one token of it is longer than 8 MiB", "write less output into one element"};
    case Reason::OUT_OF_MEMORY:
      return {"it needs more memory than one document may have", "split the report"};
    case Reason::OUT_OF_TIME:
      return {"reading it took more time than one document may have",
              "split the file; a small one that takes so long is hostile"};
    case Reason::NOT_JSON:
      return {"a line is not one JSON object", "have the producer write one object a line"};
    case Reason::BYTE_ORDER_MARK:
      return {"it begins with a byte order mark", "have the producer leave it out"};
    case Reason::NUL_BYTE:
      return {"it holds a NUL byte",
              "look at what the producer wrote; a file that lost its disk looks like this"};
    case Reason::CARRIAGE_RETURN:
      return {"it holds a carriage return", "have the producer end lines with LF alone"};
    case Reason::DUPLICATE_KEY:
      return {"an object has a key twice", "have the producer write each key once"};
    case Reason::NOT_INTEGER:
      return {"a number is not an integer", "have the producer write integers"};
    case Reason::INTEGER_RANGE:
      return {"a number is beyond 2^53 - 1", "have the producer write smaller numbers"};
    case Reason::UNKNOWN_KEY:
      return {"an object has a key that its schema does not have",
              "have the producer follow the schema, version 1"};
    case Reason::MISSING_KEY:
      return {"an object lacks a key", "have the producer follow the schema, version 1"};
    case Reason::WRONG_TYPE:
      return {"a value has another type than its schema says",
              "have the producer follow the schema, version 1"};
    case Reason::WRONG_VALUE:
      return {"a value is not one that its schema allows",
              "have the producer follow the schema, version 1"};
    case Reason::CONTROL_CHARACTER:
      return {"a text other than a detail holds control characters", "have the producer drop them"};
    case Reason::LINE_TOO_LONG:
      return {"a line is longer than 64 KiB", "have the producer write less into one record"};
    case Reason::TOO_MANY_LINES:
      return {"it has more than a million lines", "split the file"};
    case Reason::TEXT_TOO_LONG:
      return {"a text is longer than its schema allows", "have the producer cut it"};
    case Reason::TOO_MANY_SOURCES:
      return {"it names more sources than are read", "write one file for fewer sources"};
    case Reason::NOT_REGULAR:
      return {"it is not a regular file",
              "name a file; copy what a pipe or a device gives into one"};
    case Reason::NOT_READABLE:
      return {"you may not read it", "ask whoever owns it, or run as a user who may"};
    case Reason::READER_LOST:
      return {"the sandboxed reader ended without an answer that can be used",
              "try again; if it happens again, keep the file: it may be an attack on the reader"};
  }
  return {"it is told by a code that this program does not know", ""};
}

std::string_view wordsOf(Finding finding) {
  switch (finding) {
    case Finding::NAMELESS_CASE:
      return "a case has no name: it is counted alone";
    case Finding::NESTED_CASE:
      return "a case stands inside another";
    case Finding::RESULT_OUTSIDE_CASE:
      return "a result stands outside any case";
    case Finding::RESULT_IN_OUTPUT:
      return "a result stands inside captured output";
    case Finding::FOREIGN_CONTENT:
      return "elements of another namespace were left out";
    case Finding::FOREIGN_RESULT:
      return "a result element belongs to another namespace";
    case Finding::BAD_CLAIM:
      return "a count that the report claims is no natural number";
    case Finding::CLAIM_MISMATCH:
      return "a count that the report claims differs from what is in it";
    case Finding::CONTRADICTORY_RESULTS:
      return "a case has results that contradict each other: the worst holds";
    case Finding::REPEATED_CASE:
      return "a case is there more than once: the worst holds";
    case Finding::UNKNOWN_STATUS:
      return "a case has a status that is not known";
    case Finding::TORN_TAIL:
      return "the last line does not end: it was left out";
    case Finding::SEQUENCE_GAP:
      return "records are missing: seq skips numbers";
    case Finding::SEQUENCE_REPEATED:
      return "a seq is there twice";
    case Finding::SEQUENCE_BACKWARD:
      return "a seq goes back";
    case Finding::FOREIGN_RUN:
      return "records of more than one run";
    case Finding::HOLE:
      return "nothing was watched for some of the time";
    case Finding::MISSING_SEQUENCE:
      return "watermarks are missing: seq skips numbers";
    case Finding::DROPPED_EVENTS:
      return "the source dropped events";
    case Finding::RESTARTED:
      return "the source started again";
    case Finding::STARTED_LATE:
      return "the source started after its window began";
    case Finding::BACKLOG_LEFT:
      return "events were seen and never handed on";
    case Finding::BEYOND_RECORDS:
      return "the window reaches beyond the records";
    case Finding::OVERLAPPING_WINDOWS:
      return "windows overlap";
    case Finding::INVERTED_WINDOW:
      return "a window ends before it begins";
    case Finding::EVENTS_WITHOUT_WINDOW:
      return "events in a window without length";
    case Finding::EPOCH_BACKWARD:
      return "an epoch goes back";
    case Finding::START_MOVED:
      return "when the source started changed within an epoch";
    case Finding::AFTER_FINAL:
      return "a record follows the final one";
    case Finding::CLOCK_STEP:
      return "the source's clock was set";
    case Finding::SILENT:
      return "the source said nothing for too long";
    case Finding::REWRITTEN:
      return "what was written earlier was changed";
    case Finding::AHEAD_OF_HOST:
      return "the source's clock is ahead of the host's";
  }
  return "unknown";
}

}  // namespace cordon::cli
