// The epoll instance of the process. A watch is named by a kind and a number; events of a watch
// that was removed in the same turn still arrive, so receivers look their number up.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <sys/epoll.h>

#include "services/vsock/fd.h"

namespace cordon::vsock {

enum class WatchKind : std::uint32_t { SIGNALS, FRONT_END, KICK, LISTENER, HANDSHAKE, STREAM };

struct Watch {
  WatchKind kind;
  std::uint32_t number = 0;
};

class Poller {
 public:
  Poller();
  explicit operator bool() const { return static_cast<bool>(fd); }

  // False with errno: EPERM if the descriptor is of a kind that cannot be waited for.
  bool add(int watched, Watch watch, std::uint32_t events);
  // Changes name and events; what is already there counts as new.
  bool change(int watched, Watch watch, std::uint32_t events);
  void remove(int watched);

  // At least 0 events. A negative timeout waits for ever.
  std::span<const epoll_event> wait(std::chrono::milliseconds timeout);
  static Watch watchOf(const epoll_event& event) {
    return {static_cast<WatchKind>(event.data.u64 >> 32),
            static_cast<std::uint32_t>(event.data.u64)};
  }

 private:
  Fd fd;
  epoll_event events[64];
};

}  // namespace cordon::vsock
