// Accepts RPC connections on a Unix socket, from the uids that may connect, as many as there may
// be.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <sys/types.h>

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/io.h>

#include "common/ipc/rpc-peer.h"

namespace cordon::ipc {

// A uid without a mapping in our user namespace shows as this one: it may be anybody.
inline constexpr uid_t OVERFLOW_UID = 65534;

struct ListenerRules {
  std::set<uid_t> allowedUids;  // root counts only if it stands here; OVERFLOW_UID never does
  std::size_t connections = 8;
  kj::Duration backOff =
      100 * kj::MILLISECONDS;  // after an accept that failed for want of a resource
};

// What became of a connection, for the log and for tests.
struct ConnectionEvent {
  enum class Kind : std::uint8_t { ACCEPTED, REFUSED, ENDED, ACCEPT_FAILED };
  Kind kind = Kind::ACCEPTED;
  std::optional<uid_t> uid;                    // the peer's, where the kernel says
  ErrorCode reason = ErrorCode::DISCONNECTED;  // of REFUSED and ENDED
  int error = 0;                               // errno, of ACCEPT_FAILED
};

class RpcListener final : private kj::TaskSet::ErrorHandler {
 public:
  using Bootstrap = std::function<capnp::Capability::Client(uid_t peer)>;
  using Observer = std::function<void(const ConnectionEvent&)>;

  // listener: a listening SOCK_STREAM Unix socket, non-blocking and close-on-exec. The references
  // must outlive it.
  RpcListener(kj::AutoCloseFd listener, kj::UnixEventPort& events, kj::LowLevelAsyncIoProvider& io,
              kj::Timer& timer, ListenerRules rules, PeerLimits limits, Bootstrap bootstrap,
              Observer observer);
  KJ_DISALLOW_COPY(RpcListener);

  // Accepts for ever. Fails only if the listening socket itself is broken.
  kj::Promise<void> run();

  [[nodiscard]] std::size_t connections() const { return open; }

 private:
  kj::Promise<void> acceptAll();
  void admit(kj::AutoCloseFd socket);
  // Lets go of one waiting client though no descriptor is left for it, with the one kept in
  // reserve.
  void shedOne();
  void keepReserve();
  void ended(std::optional<uid_t> uid, ErrorCode reason);
  void taskFailed(kj::Exception&& exception) override;

  kj::AutoCloseFd listener;
  kj::AutoCloseFd reserve;
  kj::UnixEventPort::FdObserver readable;
  kj::LowLevelAsyncIoProvider& io;
  kj::Timer& timer;
  ListenerRules rules;
  PeerLimits limits;
  Bootstrap bootstrap;
  Observer observer;
  std::size_t open = 0;
  kj::TaskSet peers;
};

}  // namespace cordon::ipc
