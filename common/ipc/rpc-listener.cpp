#include "common/ipc/rpc-listener.h"

#include <cerrno>
#include <sys/socket.h>
#include <utility>

#include <kj/debug.h>

namespace cordon::ipc {
namespace {

std::optional<uid_t> peerUid(int socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  if (size != sizeof(credentials)) return std::nullopt;
  return credentials.uid;
}

// accept(2): these say that this one client is gone, not that the listener is broken.
bool isOfOneClient(int error) {
  return error == EINTR || error == ECONNABORTED || error == EPROTO || error == EPERM;
}

bool isWantOfResource(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

RpcListener::RpcListener(kj::AutoCloseFd listeningSocket, kj::UnixEventPort& events,
                         kj::LowLevelAsyncIoProvider& provider, kj::Timer& clock,
                         ListenerRules listenerRules, PeerLimits peerLimits,
                         Bootstrap makeBootstrap, Observer eventObserver)
    : listener(kj::mv(listeningSocket)),
      readable(events, listener, kj::UnixEventPort::FdObserver::OBSERVE_READ),
      io(provider),
      timer(clock),
      rules(std::move(listenerRules)),
      limits(peerLimits),
      bootstrap(std::move(makeBootstrap)),
      observer(std::move(eventObserver)),
      peers(*this) {
  keepReserve();
}

kj::Promise<void> RpcListener::run() {
  return acceptAll().then([this]() { return readable.whenBecomesReadable(); }).then([this]() {
    return run();
  });
}

// The observer is edge-triggered: everything that waits is taken before the next wait.
kj::Promise<void> RpcListener::acceptAll() {
  for (;;) {
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
      admit(kj::AutoCloseFd(socket));
      continue;
    }
    const int error = errno;
    if (error == EAGAIN) return kj::READY_NOW;
    if (isOfOneClient(error)) continue;
    observer({.kind = ConnectionEvent::Kind::ACCEPT_FAILED, .uid = std::nullopt, .error = error});
    if (!isWantOfResource(error)) return makeException(ErrorCode::INTERNAL);
    shedOne();
    return timer.afterDelay(rules.backOff).then([this]() { return acceptAll(); });
  }
}

void RpcListener::shedOne() {
  if (reserve.get() < 0) return keepReserve();
  reserve = nullptr;
  const kj::AutoCloseFd unlucky(
      ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (unlucky.get() < 0) return;
  observer({.kind = ConnectionEvent::Kind::REFUSED,
            .uid = peerUid(unlucky),
            .reason = ErrorCode::TOO_MANY_CONNECTIONS});
}

// A socket, because nothing may be opened inside a sandbox.
void RpcListener::keepReserve() {
  reserve = kj::AutoCloseFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void RpcListener::admit(kj::AutoCloseFd socket) {
  if (reserve.get() < 0) keepReserve();
  const auto uid = peerUid(socket);
  const auto refuse = [&](ErrorCode reason) {
    observer({.kind = ConnectionEvent::Kind::REFUSED, .uid = uid, .reason = reason});
  };
  if (!uid || *uid == OVERFLOW_UID || !rules.allowedUids.contains(*uid))
    return refuse(ErrorCode::PEER_REFUSED);
  if (open >= rules.connections) return refuse(ErrorCode::TOO_MANY_CONNECTIONS);

  auto stream = io.wrapSocketFd(kj::mv(socket), kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC |
                                                    kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK);
  auto peer =
      kj::heap<RpcPeer>(kj::mv(stream), RpcPeer::Side::SERVER, bootstrap(*uid), limits, timer);
  ++open;
  observer({.kind = ConnectionEvent::Kind::ACCEPTED, .uid = uid});
  auto end = peer->onEnd();
  // The peer is destroyed before its end is told: whoever sees ENDED finds the socket closed.
  peers.add(end.attach(kj::mv(peer)).then([this, uid](ErrorCode reason) { ended(uid, reason); }));
}

void RpcListener::ended(std::optional<uid_t> uid, ErrorCode reason) {
  --open;
  observer({.kind = ConnectionEvent::Kind::ENDED, .uid = uid, .reason = reason});
}

void RpcListener::taskFailed(kj::Exception&& exception) {
  ended(std::nullopt, codeOf(exception));
}

}  // namespace cordon::ipc
