// Asks the telemetry sources of a guest at an interval, and answers whether a window was covered.
//
// A round asks every source once, a few at a time; the next begins an interval after it ended, or
// at once where a report waits. Questions are reads of the guest channel, whose verdicts (tamper
// included) stand in its log; what one source could not be asked is told of that source. Dropping
// the poller ends it with all its questions.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <kj/async.h>
#include <kj/time.h>
#include <kj/timer.h>

#include "services/parser/guest-client.h"
#include "services/parser/polled-source.h"

namespace cordon::parser {

inline constexpr std::size_t MAX_POLLED_SOURCES = 64;

struct CoveragePlan {
  struct Source {
    std::string name;  // as its watermarks must call it; each once
    std::string path;
  };
  std::vector<Source> sources;
  kj::Duration interval = 0 * kj::SECONDS;
  kj::Duration silence = 0 * kj::SECONDS;  // nothing new for longer is silence
  channel::Budget budget;                  // of each question
};

struct CoverageAnswer {
  // Sources in the order of the plan; status, reason and line of the first that is not read; OK
  // where any gave a record, else EMPTY.
  records::CoverageReport coverage;
  std::vector<SourcePoll> polled;  // the same order
};

class CoveragePoller {
 public:
  // Begins at once. The references outlive it; `wall` says the time of day, which may step.
  CoveragePoller(GuestClient& guestClient, kj::Timer& clock, const kj::Clock& wall,
                 IdSource& idSource, CoveragePlan coveragePlan);
  KJ_DISALLOW_COPY(CoveragePoller);

  // Asks each source once more, then answers. Rejected where the host is at fault.
  kj::Promise<CoverageAnswer> report(std::optional<records::Window> asked);

 private:
  struct Waiter {
    std::uint64_t round;  // the first that is new enough
    kj::Own<kj::PromiseFulfiller<void>> fulfiller;
  };

  kj::Promise<void> run();
  kj::Promise<void> rest();
  kj::Promise<void> askRound();
  kj::Promise<void> askNext();
  kj::Promise<void> ask(std::size_t index);
  void release();
  void fail(kj::Exception&& exception);
  [[nodiscard]] Moment now() const;
  [[nodiscard]] CoverageAnswer answer(const std::optional<records::Window>& asked) const;

  GuestClient& client;
  kj::Timer& timer;
  const kj::Clock& wallClock;
  IdSource& ids;
  const CoveragePlan plan;
  std::size_t unevenRecords = 0;
  std::deque<PolledSource> sources;
  std::size_t nextSource = 0;  // of the round
  std::uint64_t rounds = 0;    // begun
  std::vector<Waiter> waiters;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> resting;
  kj::Maybe<kj::Exception> fault;
  kj::Promise<void> life = nullptr;  // the last member: it ends before what it uses
};

}  // namespace cordon::parser
