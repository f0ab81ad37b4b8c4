#include "services/vsock/hybrid/listener.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <sys/socket.h>
#include <utility>
#include <vector>

#include "services/vsock/hybrid/connect-line.h"
#include "services/vsock/hybrid/socket-stream.h"

namespace cordon::vsock {
namespace {

constexpr std::uint32_t CLIENT_EVENTS = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

}  // namespace

HybridListener::HybridListener(int socket, std::size_t clients, Device& theDevice,
                               Poller& thePoller)
    : fd(socket), maxClients(clients), device(theDevice), poller(thePoller) {}

void HybridListener::onAcceptable(TimePoint now) {
  moreToAccept = true;
  for (std::size_t taken = 0; taken < ACCEPTS_PER_TURN; ++taken) {
    Fd client(::accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      // EMFILE, ENFILE, ENOMEM: the client stays in the backlog, and tick() tries again.
      moreToAccept = errno != EAGAIN;
      return;
    }
    ++device.counters.accepted;
    if (handshakes.size() + device.connectionCount() >= maxClients) {
      ++device.counters.overCap;
      continue;
    }
    std::uint32_t number = nextNumber++;
    while (handshakes.contains(number)) number = nextNumber++;
    if (!poller.add(client.get(), {WatchKind::HANDSHAKE, number}, CLIENT_EVENTS)) continue;
    handshakes.emplace(number, Handshake{std::move(client), {}, now + HANDSHAKE_DEADLINE});
    onHandshake(number, now);
  }
}

void HybridListener::onHandshake(std::uint32_t number, TimePoint now) {
  const auto found = handshakes.find(number);
  if (found == handshakes.end()) return;
  if (advance(found->second, now) == Progress::DONE) handshakes.erase(found);
}

HybridListener::Progress HybridListener::advance(Handshake& handshake, TimePoint now) {
  for (;;) {
    // Looked at before it is taken: what stands behind the newline is the guest's.
    std::array<char, MAX_CONNECT_LINE> bytes;
    const std::size_t room = MAX_CONNECT_LINE - handshake.line.size();
    const ssize_t seen =
        ::recv(handshake.socket.get(), bytes.data(), room, MSG_PEEK | MSG_DONTWAIT);
    if (seen < 0 && errno == EINTR) continue;
    if (seen < 0 && errno == EAGAIN) return Progress::WAITS;
    if (seen <= 0) break;
    const std::string_view view(bytes.data(), static_cast<std::size_t>(seen));
    const std::size_t newline = view.find('\n');
    const std::size_t take = newline == std::string_view::npos ? view.size() : newline + 1;
    const ssize_t taken = ::recv(handshake.socket.get(), bytes.data(), take, MSG_DONTWAIT);
    if (taken != static_cast<ssize_t>(take)) break;
    handshake.line.append(bytes.data(), take);
    if (newline != std::string_view::npos) {
      handshake.line.pop_back();
      const std::optional<std::uint32_t> port = parseConnectLine(handshake.line);
      if (!port) break;
      handOver(handshake, *port, now);
      return Progress::DONE;
    }
    if (handshake.line.size() == MAX_CONNECT_LINE) break;
  }
  ++device.counters.badHandshakes;
  return Progress::DONE;
}

void HybridListener::handOver(Handshake& handshake, std::uint32_t guestPort, TimePoint now) {
  const int socket = handshake.socket.get();
  const std::optional<std::uint32_t> hostPort =
      device.connect(std::make_unique<SocketStream>(std::move(handshake.socket)), guestPort, now);
  if (!hostPort) return;
  // What the socket already has (bytes, a hang-up) is reported anew under its new name.
  poller.change(socket, {WatchKind::STREAM, *hostPort}, CLIENT_EVENTS);
}

void HybridListener::tick(TimePoint now) {
  std::erase_if(handshakes, [&](const auto& entry) {
    if (entry.second.deadline > now) return false;
    ++device.counters.badHandshakes;
    return true;
  });
  if (moreToAccept) onAcceptable(now);
}

}  // namespace cordon::vsock
