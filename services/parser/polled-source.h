// What one telemetry source of a guest has said, poll by poll: the file of its watermarks is read
// whole each time, may only have grown, and only what is new of it is taken.
//
// Beyond what the records say together (common/records/coverage/coverage-ledger.h):
// - CONTRADICTORY: a file that is not the earlier one with more behind it (REWRITTEN); one that is
//   no file of watermarks, or too long, or speaks of another source (of which nothing counts then);
// - INCOMPLETE, where it intersects the window asked for: a time in which nothing new arrived
//   (SILENT, by the host's clock); a record that vouches for a time which was not over yet when it
//   arrived, by more than the silence that is allowed (AHEAD_OF_HOST).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kj/time.h>

#include "common/records/coverage/coverage-ledger.h"
#include "common/records/coverage/watermarks.h"
#include "services/parser/bulk.h"
#include "services/parser/digest.h"
#include "services/parser/outcome.h"

namespace cordon::parser {

inline constexpr std::uint64_t MAX_WATERMARK_FILE = std::uint64_t{16} << 20;  // bytes
// Bytes of a file that are taken in one poll: they are held until the guest's reply is verified. If
// there are more, the source is asked again at once.
inline constexpr std::size_t MAX_NEWS = std::size_t{1} << 20;
// Of all sources of a poller: records that do not just go on where the one before ended. Only they
// cost memory, about 110 bytes each; a source that is over it is REFUSED.
inline constexpr std::size_t MAX_UNEVEN_RECORDS = 200'000;

// One moment by both clocks of the host.
struct Moment {
  kj::TimePoint monotonic = kj::origin<kj::TimePoint>();
  std::int64_t wallMs = 0;  // since the epoch
};

// Windows in which something was wrong. Beyond a bound they say too much, never too little.
class Spans {
 public:
  void add(const records::Window& window);
  // No window asked for: whether there are any.
  [[nodiscard]] bool intersect(const std::optional<records::Window>& asked) const;

 private:
  static constexpr std::size_t MAX = 4096;
  std::vector<records::Window> spans;
};

struct SourcePoll {
  std::uint32_t asked = 0;
  std::uint32_t answered = 0;
  std::optional<Failure> lastFailure = {};
  std::int64_t firstAnswerMs = 0;  // by the host's clock, since the epoch; 0: none
  std::int64_t lastNewsMs = 0;
  std::uint64_t longestSilenceMs = 0;
  bool silent = false;
};

class PolledSource {
 public:
  // Takes one answer: the part that was known before is compared, the rest is kept.
  class Answer final : public BulkSink {
   public:
    explicit Answer(const PolledSource& of) : known(of.taken) {}
    kj::Promise<void> write(kj::ArrayPtr<const kj::byte> bytes) override;
    kj::Promise<void> end() override { return kj::READY_NOW; }

   private:
    friend class PolledSource;
    const std::uint64_t known;
    std::uint64_t total = 0;
    RunningDigest beginning;  // of the first `known` bytes
    std::string news;
    bool hasMore = false;
  };

  // `unevenRecords` is shared by all sources of a poller and outlives them.
  PolledSource(std::string sourceName, kj::Duration allowedSilence, std::size_t& unevenRecords,
               const Moment& begin);
  KJ_DISALLOW_COPY(PolledSource);

  // Whether another answer could still change anything.
  [[nodiscard]] bool isOpen() const;
  void countQuestion() { ++poll.asked; }
  // Whether there is more to be had at once.
  bool conclude(Answer& answer, const Outcome<Content>& outcome, const Moment& now);

  // What is known at `now`, of this source alone.
  [[nodiscard]] records::CoverageReport judge(const std::optional<records::Window>& asked,
                                              const Moment& now) const;
  [[nodiscard]] SourcePoll pollAt(const Moment& now) const;

 private:
  records::Reason take(const records::Watermark& mark);
  bool isEven(const records::Watermark& mark) const;
  void hearNews();
  [[nodiscard]] kj::Duration silenceAt(const Moment& now) const;

  const std::string name;
  const kj::Duration allowed;
  std::size_t& uneven;
  records::WatermarksReader reader;
  records::CoverageLedger ledger;
  std::optional<records::Watermark> last;
  bool isFinal = false;

  std::uint64_t taken = 0;  // bytes
  channel::Sha256 digest;   // of them
  bool isRewritten = false;
  bool isTooLong = false;

  SourcePoll poll;
  Moment arrival;        // of the answer that is being read
  kj::TimePoint newsAt;  // of the last news, or the beginning
  Spans silences;
  Spans ahead;
};

}  // namespace cordon::parser
