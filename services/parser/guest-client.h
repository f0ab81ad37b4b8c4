// The host's side of the guest channel: one operation = exchanges of one request and one reply,
// each over a connection of its own. Sources: channel.md §8 to §12 (rules of the channel), host.md
// §13 (session pinning), realization.md 40.
//
// Nothing here trusts the guest. Time, randomness, connections and the record of verdicts come from
// outside.
//
// - Retries reuse the id and the bytes of the request, always. A loss is resent up to 3 attempts; a
//   time-out never is.
// - Time that an operation spends waiting for the caller's own BulkSource or BulkSink does not
//   count against the allowance of a round trip nor against the command's bound (the guest could
//   not do better), but it counts against untimedBoundMs, which bounds the whole. A sink that
//   stalls for longer than the guest's idle time-out (60 s) makes the guest close; the reply is
//   then fetched again, which uses up an attempt.
// - Budgets of requests that have none on the wire (ping, poll, diag) bound them here all the same.
#pragma once

#include <cstdint>
#include <string>

#include <kj/async.h>
#include <kj/timer.h>

#include "common/channel/limits.h"
#include "common/channel/message.h"
#include "services/parser/bulk.h"
#include "services/parser/outcome.h"
#include "services/parser/trace.h"
#include "services/parser/transport.h"

namespace cordon::parser {

inline constexpr std::size_t MAX_ARGV = 1024;         // elements, env entries too
inline constexpr std::size_t MAX_PATH_LENGTH = 4096;  // bytes

// Ids of the requests that the client makes up itself: acks, polls within an exec, session checks.
class IdSource {
 public:
  virtual ~IdSource() noexcept(false) = default;
  virtual channel::Id next() = 0;
};
// From getrandom(2).
class KernelIdSource final : public IdSource {
 public:
  channel::Id next() override;
};

struct ClientOptions {
  kj::Duration allowance = 180 * kj::SECONDS;   // of a round trip where channelMs is not given
  kj::Duration operationBound = 4 * kj::HOURS;  // of an operation, over untimedBoundMs
  // A silent guest could otherwise hold up an operation that is done for the whole allowance
  // (channel.md §8.4).
  kj::Duration ackAllowance = 5 * kj::SECONDS;                // of an ack with its retries
  kj::Duration checkAllowance = 30 * kj::SECONDS;             // of a session check with its retries
  std::uint64_t execReplyCap = channel::EXEC_REPLY_BULK_CAP;  // bytes: stdout and stderr together
};

class GuestClient {
 public:
  // All references must outlive the client, and the client (and sources and sinks) every promise it
  // returned. Dropping a promise cancels the operation and closes its connection.
  GuestClient(Transport& transport, kj::Timer& timer, IdSource& ids, VerdictLog& log,
              ClientOptions options = {});
  ~GuestClient() noexcept(false);
  KJ_DISALLOW_COPY(GuestClient);

  kj::Promise<Outcome<Pong>> ping(channel::Id id, channel::Budget budget);
  // As ping, and remembers the session. From then on
  //  - exec and write that succeeded after more than one delivery are certified by a fresh ping:
  //    SessionChange where it tells another session, UNCERTIFIED where none came;
  //  - exec and write that failed by the guest's error or the command's time after more than one
  //    delivery, any of exec, read and write that failed by loss or a host-side budget, and
  //    REPLAY_DIFFERS (an agent that restarted runs the request again) are checked at best effort:
  //    a changed session or tamper outranks the failure in hand.
  // An operation is judged by the session that was pinned when it started; SessionChange pins the
  // new one.
  kj::Promise<Outcome<Pong>> pinSession(channel::Id id, channel::Budget budget);

  // request.dataSize has a value exactly where `input` has one. stdout comes first, then stderr.
  kj::Promise<Outcome<Finished>> exec(channel::Id id, channel::Exec request,
                                      kj::Maybe<BulkSource&> input, BulkSink& output,
                                      BulkSink& errors);
  // request.maxBytes absent: 16 MiB. A longer file: FileLimit.
  kj::Promise<Outcome<Content>> readFile(channel::Id id, channel::ReadFile request,
                                         BulkSink& content);
  kj::Promise<Outcome<Written>> writeFile(channel::Id id, channel::WriteFile request,
                                          BulkSource& content);
  // A stored error of the target comes back as the failure it is; UNKNOWN_ID where the guest does
  // not know the target, STALE where it ran and its result is gone. Bulk of a stored reply is read,
  // checked and dropped. Nothing is acked.
  kj::Promise<Outcome<Polled>> poll(channel::Id id, channel::Id target, channel::Budget budget);
  kj::Promise<Outcome<DiagReport>> diag(channel::Id id, std::int64_t maxEntries,
                                        channel::Budget budget);

  [[nodiscard]] const Trace& trace() const;
  [[nodiscard]] kj::Maybe<channel::Id> pinned() const;

 private:
  struct Impl;
  kj::Own<Impl> impl;
};

}  // namespace cordon::parser
