// What one source's watermarks say of any window of time: kept per record only where a record
// changes an answer. Rules: coverage-ledger.h, whose part this is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "common/records/coverage/coverage.h"

namespace cordon::records {

class SourceHistory {
 public:
  // `source` is not looked at.
  void add(const Watermark& watermark);

  struct Judgement {
    Coverage answer = Coverage::COMPLETE;
    Findings findings;
    std::vector<Gap> gaps;  // at most `maxGaps`, the earliest
    bool truncated = false;
    std::uint64_t dropped = 0;
    std::uint64_t restarts = 0;
  };
  [[nodiscard]] Judgement judge(const std::optional<Window>& asked, bool tornTail,
                                std::size_t maxGaps) const;

 private:
  // A record that leaves any window incomplete which it intersects.
  struct Spoiler {
    Window window;
    std::int64_t lateToMs = 0;  // the source was not alive from the window's start up to here
    std::int64_t dropped = 0;
    bool restarted = false;
    bool missesSequence = false;
    bool clockStep = false;
  };
  using Covered = std::map<std::int64_t, std::int64_t>;  // from -> to; disjoint, never adjacent
  class GapWalk;

  void addSequence(const Watermark& watermark, Spoiler& spoiler);
  void addWindow(const Watermark& watermark, Spoiler& spoiler);
  bool cover(const Window& window);
  void judgeSpoilers(const std::optional<Window>& asked, Judgement& judgement,
                     std::vector<std::uint32_t>& late) const;
  void findGaps(const Window& question, const std::vector<std::uint32_t>& late, std::size_t maxGaps,
                Judgement& judgement) const;

  Covered covered;
  std::deque<Spoiler> spoilers;  // in the order of the file
  Findings contradictions;
  std::optional<Window> span;  // of all windows that are none too many
  bool any = false;
  bool final = false;
  std::int64_t epoch = 0;
  std::int64_t seq = 0;  // the highest of the epoch
  std::int64_t aliveSinceMs = 0;
  Window lastWindow;
  std::int64_t lastBacklog = 0;
};

}  // namespace cordon::records
