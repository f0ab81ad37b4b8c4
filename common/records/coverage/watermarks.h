// Reads a file of coverage watermarks (JSON Lines): one line
//   {v: 1, source, epoch, seq, window_ms: [from, to], events, bytes, dropped, backlog,
//    alive_since_ms, final?}
// with nothing else in it. Rules of a line: common/records/lines/line.h. `seq` is at least 1,
// counters are not negative, `source` has at most MAX_SOURCE_BYTES and no control characters; times
// and `epoch` are any integers. What the records say together is the ledger's business.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "common/records/coverage/coverage.h"
#include "common/records/lines/reader.h"

namespace cordon::records {

inline constexpr std::size_t MAX_SOURCE_BYTES = 256;  // UTF-8, escapes resolved

class WatermarksReader final : private LineSink {
 public:
  // Called for each record in order. NONE, or why the record, and with it the file, is refused.
  using Take = std::function<Reason(const Watermark&)>;

  explicit WatermarksReader(Take takeRecord);
  WatermarksReader(const WatermarksReader&) = delete;
  WatermarksReader& operator=(const WatermarksReader&) = delete;

  // Any pieces: the result does not depend on them. False once no further byte can change it.
  bool feed(std::span<const std::byte> bytes) { return lines.feed(bytes); }

  // How the file stands. May be asked at any time; feeding may go on afterwards.
  [[nodiscard]] LinesEnd end() const { return lines.end(); }

 private:
  void* beginRecord() override;
  Reason endRecord() override { return take(watermark); }

  LinesReader lines;
  Watermark watermark;
  Take take;
};

}  // namespace cordon::records
