// The retry loops: what becomes of one request over several round trips. Source: channel.md §8.2
// (all operations but exec) and §9 (exec).
#pragma once

#include <cstdint>

#include <kj/async.h>
#include <kj/timer.h>

#include "services/parser/guest-client.h"
#include "services/parser/outcome.h"
#include "services/parser/reception.h"
#include "services/parser/round-trip.h"
#include "services/parser/trace.h"
#include "services/parser/transport.h"

namespace cordon::parser {

inline constexpr unsigned EXCHANGE_ATTEMPTS = 3;
inline constexpr kj::Duration EXCHANGE_BACKOFF = 50 * kj::MILLISECONDS;  // × attempt
inline constexpr kj::Duration POLL_INTERVAL = 500 * kj::MILLISECONDS;
inline constexpr unsigned SILENT_WINDOWS = 3;
inline constexpr unsigned EXEC_LOSSES = 3;  // in a row that an exec bears
// What the guest may take beyond the command's time: kill grace, wait for the pipes, and a margin.
inline constexpr kj::Duration OBSERVATION_GRACE =
    (channel::KILL_GRACE_MS + channel::WAIT_DELAY_MS) * kj::MILLISECONDS + 2 * kj::SECONDS;

// What all operations on one guest share.
struct Line {
  Transport& transport;
  kj::Timer& timer;
  IdSource& ids;
  Trace trace;
};

struct Bounds {
  kj::Duration allowance;  // of each round trip
  kj::TimePoint deadline;  // of the whole
};

// A reply that may answer the request. Errors of the guest are replies too.
struct Answer {
  channel::Message message;
  std::uint32_t deliveries = 0;
};

// The request as it goes out; CONTROL_TOO_LARGE and INVALID_MESSAGE are the arguments' fault.
std::variant<Request, ArgumentError> makeRequest(const channel::Message& message,
                                                 kj::Maybe<BulkSource&> source = nullptr);

// Everything passed in must outlive the promise.
kj::Promise<Outcome<Answer>> exchange(Line& line, Request& request, Reception& reception,
                                      Bounds bounds);
// commandBound: the command's own time, where it has one.
kj::Promise<Outcome<Answer>> execExchange(Line& line, Request& request, Reception& reception,
                                          Bounds bounds, kj::Maybe<kj::Duration> commandBound);

}  // namespace cordon::parser
