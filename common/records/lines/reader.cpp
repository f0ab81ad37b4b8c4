#include "common/records/lines/reader.h"

#include <algorithm>
#include <string_view>

#include "common/records/lines/limits.h"
#include "common/records/lines/line.h"

namespace cordon::records {

bool LinesReader::feed(std::span<const std::byte> bytes) {
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (violation == Reason::NONE && !rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const bool isEnded = end < rest.size();
    const bool isCut = partial.size() + end > MAX_LINE_BYTES;
    const std::string_view piece = rest.substr(0, std::min(end, MAX_LINE_BYTES - partial.size()));
    rest.remove_prefix(end + (isEnded ? 1 : 0));
    if (partial.empty() && isEnded) {
      take(piece, isCut);
      continue;
    }
    partial.append(piece);
    if (!isEnded && !isCut) return true;
    take(partial, isCut);
    partial.clear();
  }
  return violation == Reason::NONE;
}

void LinesReader::take(std::string_view line, bool isCut) {
  violation = records >= MAX_LINES ? Reason::TOO_MANY_LINES
                                   : readLine(line, isCut, table, sink->beginRecord());
  if (violation == Reason::NONE) violation = sink->endRecord();
  if (violation == Reason::NONE) ++records;
}

LinesEnd LinesReader::end() const {
  LinesEnd end;
  end.records = records;
  end.reason = violation;
  if (violation != Reason::NONE) {
    end.status = statusOf(violation);
    end.line = records + 1;
    return end;
  }
  end.status = records > 0 ? Status::OK : Status::EMPTY;
  end.tornTail = !partial.empty();
  return end;
}

}  // namespace cordon::records
