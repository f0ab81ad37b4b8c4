// What a peer of an RPC connection may cost. Source: protocols/*.capnp, "Limits of a connection".
#pragma once

#include <cstddef>
#include <cstdint>

#include <kj/time.h>

namespace cordon::ipc {

// Cap'n Proto's own bound, checked here because 0.9.2 lets a count that wraps to 0 pass.
inline constexpr std::uint32_t MAX_SEGMENTS = 512;

struct PeerLimits {
  // Messages.
  std::size_t messageBytes = std::size_t{1}
                             << 20;  // of one message, with its header; also what may be read of it
  int nesting = 16;                  // pointers deep
  std::uint32_t capabilities = 16;   // in one message
  kj::Duration messageTime = 30 * kj::SECONDS;  // from the first byte of a message to its last

  // Calls of the peer.
  std::size_t callsInFlight = 256;      // called and not returned; over it the connection ends
  std::size_t unfinishedAnswers = 256;  // returned, and the peer still holds the results
  std::uint64_t flowBytes = std::uint64_t{8}
                            << 20;  // of calls in flight: over it nothing is read until one returns
  // Longest time a call of the peer may take; over it the connection ends, because a service bounds
  // its work itself.
  kj::Duration callTime = 4 * kj::HOURS + 5 * kj::MINUTES;

  // What is queued for the peer.
  std::size_t queueBytes = std::size_t{16} << 20;  // over it the connection ends
  kj::Duration stallTime =
      30 * kj::SECONDS;  // the same, where one message waits so long to be taken
  std::size_t streamWindow =
      std::size_t{64} << 10;  // bytes of streaming calls on one capability that nobody answered
  kj::Duration watchInterval = 1 * kj::SECONDS;  // how often time and queue are looked at
};

}  // namespace cordon::ipc
