// What the fuzz targets of JSON Lines share: ways to cut a file, and how it ended.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/records/lines/fuzz/oracle.h"
#include "common/records/report.h"

namespace cordon::records::fuzz {

// Longer files are not fed byte by byte: it takes the time of a hundred others.
inline constexpr std::size_t MAX_SINGLE = 4096;

inline std::size_t whole() {
  return SIZE_MAX;
}
inline std::size_t single() {
  return 1;
}
class Random {
 public:
  std::size_t operator()() {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return 1 + state % 61;
  }

 private:
  std::uint32_t state = 2463534242u;
};

template <class Reader, class NextStep>
void feedCut(Reader& reader, std::string_view file, NextStep&& nextStep) {
  while (!file.empty()) {
    const std::string_view piece = file.substr(0, nextStep());
    reader.feed(std::as_bytes(std::span(piece)));
    file.remove_prefix(piece.size());
  }
}

inline void requireStatus(const FileJudged& judged, Status status, Reason reason,
                          std::uint64_t line) {
  require(line == judged.line, "the same bad line");
  require((reason == Reason::NONE) == (judged.judged == Judged::GOOD), "a reason for a bad line");
  switch (judged.judged) {
    case Judged::GOOD:
      require(status == (judged.records > 0 ? Status::OK : Status::EMPTY), "good");
      break;
    case Judged::UNPARSABLE:
      require(status == Status::UNPARSABLE, "unparsable");
      break;
    case Judged::REFUSED:
      require(status == Status::REFUSED, "refused");
      break;
    case Judged::BAD:
      require(status == Status::UNPARSABLE || status == Status::REFUSED, "bad");
      break;
  }
}

}  // namespace cordon::records::fuzz
