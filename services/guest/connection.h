// One connection: one request in, one reply out. Source: protocols/channel.md §1 and §15.1.
#pragma once

#include <cstdint>
#include <optional>

#include "services/guest/diag-ring.h"
#include "services/guest/dispatcher.h"
#include "services/guest/fd.h"

namespace cordon::guest {

class Connection {
 public:
  // idleTimeoutMs: how long the peer may be silent, or take nothing, before it loses the
  // connection.
  Connection(Fd accepted, DiagRing& ring, std::int64_t idleTimeoutMs)
      : socket(std::move(accepted)), diag(ring), idleMs(idleTimeoutMs) {}

  // The whole request with its verified bulk. Nothing if the peer left or sent something illegal;
  // the latter is a `decode-failed` entry and gets no reply.
  std::optional<Request> receive();
  // Sends the reply; a failure is a `reply-write-failed` entry, and the reply stays with the store.
  void send(const channel::Id& request, const Reply& reply);

 private:
  bool ready(short events);
  bool write(std::span<const std::byte> first, std::span<const std::byte> second);
  bool sendBulk(const Reply& reply);

  Fd socket;
  DiagRing& diag;
  std::int64_t idleMs;
};

}  // namespace cordon::guest
