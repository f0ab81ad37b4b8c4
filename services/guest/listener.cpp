#include "services/guest/listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

// After <sys/socket.h>, whose sa_family_t it uses.
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <linux/vm_sockets.h>
#include <thread>
#include <utility>

#include "services/guest/reply.h"

namespace cordon::guest {
namespace {

constexpr int BACKLOG = 64;
constexpr int MAX_CONSECUTIVE_FAILURES = 8;
constexpr auto AFTER_ACCEPT_FAILURE = std::chrono::milliseconds(10);
constexpr auto AFTER_BROKEN_LISTENER = std::chrono::milliseconds(100);
constexpr auto AFTER_LISTEN_FAILURE = std::chrono::seconds(1);

Fd bound(int family, const void* address, socklen_t size) {
  Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return socket;
  if (::bind(socket.get(), static_cast<const sockaddr*>(address), size) != 0 ||
      ::listen(socket.get(), BACKLOG) != 0) {
    int error = errno;
    socket.reset();
    errno = error;
  }
  return socket;
}

Fd openListener(const VsockAddress& address) {
  sockaddr_vm name{};
  name.svm_family = AF_VSOCK;
  name.svm_cid = VMADDR_CID_ANY;
  name.svm_port = address.port;
  return bound(AF_VSOCK, &name, sizeof name);
}

Fd openListener(const UnixAddress& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (address.path.size() >= sizeof name.sun_path) {
    errno = ENAMETOOLONG;
    return Fd();
  }
  std::memcpy(name.sun_path, address.path.c_str(), address.path.size() + 1);
  // What an earlier run left; anything but a socket is not ours to remove.
  struct stat status {};
  if (::lstat(address.path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) {
    ::unlink(address.path.c_str());
  }
  return bound(AF_UNIX, &name, sizeof name);
}

bool trustedPeer(const VsockAddress&, const Fd& connection) {
  sockaddr_vm peer{};
  socklen_t size = sizeof peer;
  return ::getpeername(connection.get(), reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
         peer.svm_family == AF_VSOCK && peer.svm_cid == VMADDR_CID_HOST;
}

bool trustedPeer(const UnixAddress&, const Fd& connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == 0 || peer.uid == ::geteuid());
}

}  // namespace

Listener::Listener(ListenAddress where, DiagRing& ring, Submit accepted)
    : address(std::move(where)), diag(ring), submit(std::move(accepted)) {}

void Listener::run() {
  for (;;) {
    Fd listening = listen();
    if (!listening.valid()) {
      std::string text = errnoText("cannot listen on " + describe(), errno);
      diag.error("listen-failed", text);
      std::fprintf(stderr, "cordon-guest: %s; trying again\n", text.c_str());
      std::this_thread::sleep_for(AFTER_LISTEN_FAILURE);
      continue;
    }
    diag.info("listening", describe());
    acceptUntilBroken(listening);
    listening.reset();
    diag.countListenerRestart();
    diag.error("listener-restarted", describe() + ": accepting failed too often in a row");
    std::this_thread::sleep_for(AFTER_BROKEN_LISTENER);
  }
}

Fd Listener::listen() {
  return std::visit([](const auto& where) { return openListener(where); }, address);
}

void Listener::acceptUntilBroken(const Fd& listening) {
  for (int failures = 0; failures < MAX_CONSECUTIVE_FAILURES;) {
    Fd connection(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.valid()) {
      failures = 0;
      // A stranger gets no byte, and no entry with which to flush the ring.
      if (trusted(connection)) submit(std::move(connection));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    diag.warn("accept-failed", errnoText(describe(), errno));
    ++failures;
    std::this_thread::sleep_for(AFTER_ACCEPT_FAILURE);
  }
}

bool Listener::trusted(const Fd& connection) const {
  return std::visit([&](const auto& where) { return trustedPeer(where, connection); }, address);
}

std::string Listener::describe() const {
  if (const auto* vsock = std::get_if<VsockAddress>(&address)) {
    return "vsock port " + std::to_string(vsock->port);
  }
  return "unix:" + std::get<UnixAddress>(address).path;
}

}  // namespace cordon::guest
