// Cuts a file of JSON Lines into lines and reads each by a table. The file comes in pieces of any
// size, and the result does not depend on them; memory is bounded by one line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/records/lines/schema.h"
#include "common/records/report.h"

namespace cordon::records {

// Where the records of a file go. A record that turns out bad is never ended.
class LineSink {
 public:
  virtual ~LineSink() = default;
  virtual void* beginRecord() = 0;  // a fresh value of the table's type
  virtual Reason endRecord() = 0;   // NONE, or why it is refused after all

 protected:
  LineSink() = default;
  LineSink(const LineSink&) = default;
  LineSink& operator=(const LineSink&) = default;
};

// How a file ended, or stands now.
struct LinesEnd {
  Status status = Status::EMPTY;  // OK once there was a record; EMPTY, UNPARSABLE, REFUSED
  Reason reason = Reason::NONE;
  std::uint64_t line = 0;     // of the violation, from 1
  std::uint64_t records = 0;  // good ones before it
  bool tornTail = false;      // an unterminated last line was dropped, unread
};

// LF ends a line. Rules of a line: line.h; caps: limits.h. The first bad line voids the file; what
// comes after it is not looked at.
class LinesReader {
 public:
  // Both outlive the reader.
  LinesReader(std::span<const Field> recordTable, LineSink& recordSink)
      : table(recordTable), sink(&recordSink) {}

  // False once no further byte can change the end; bytes given nevertheless are ignored.
  bool feed(std::span<const std::byte> bytes);

  // May be asked at any time; feeding may go on afterwards.
  [[nodiscard]] LinesEnd end() const;

 private:
  void take(std::string_view line, bool isCut);

  std::span<const Field> table;
  LineSink* sink;
  std::string partial;  // of a line whose end did not come yet: at most MAX_LINE_BYTES
  std::uint64_t records = 0;
  Reason violation = Reason::NONE;
};

}  // namespace cordon::records
