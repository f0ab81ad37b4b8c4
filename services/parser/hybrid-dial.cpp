#include "services/parser/hybrid-dial.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

#include <kj/debug.h>
#include <kj/io.h>

#include "services/parser/digest.h"

namespace cordon::parser {
namespace {

constexpr std::uint32_t ANY_PORT = std::numeric_limits<std::uint32_t>::max();
constexpr std::string_view PREFIX = "OK ";
constexpr std::size_t SHORTEST = 5;  // "OK 1\n"

enum class Line : std::uint8_t { PARTIAL, WHOLE, ALIEN };

// What a reply that begins like this can still become.
Line judgeReply(std::string_view reply) {
  const std::size_t known = std::min(reply.size(), PREFIX.size());
  if (reply.substr(0, known) != PREFIX.substr(0, known)) return Line::ALIEN;
  if (reply.size() <= PREFIX.size()) return Line::PARTIAL;
  std::string_view digits = reply.substr(PREFIX.size());
  const bool whole = digits.back() == '\n';
  if (whole) digits.remove_suffix(1);
  if (digits.empty() || digits.front() == '0') return Line::ALIEN;
  std::uint32_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size()) return Line::ALIEN;
  return whole ? Line::WHOLE : Line::PARTIAL;
}

struct Failed {};
using Dial = std::variant<kj::Own<kj::AsyncIoStream>, Failed, Tamper>;

// One dial: from the connected, checked socket to the end of the handshake.
class Handshake {
 public:
  Handshake(kj::Own<kj::AsyncIoStream> connected, std::uint32_t port)
      : stream(kj::mv(connected)), request("CONNECT " + std::to_string(port) + "\n") {}
  KJ_DISALLOW_COPY(Handshake);

  kj::Promise<Dial> run() {
    return stream->write(request.data(), request.size()).then([this]() { return read(); });
  }

 private:
  kj::Promise<Dial> read() {
    // Never more than the line must still have: what stands behind it belongs to the guest channel.
    const std::size_t most = size < SHORTEST ? SHORTEST - size : 1;
    return stream->tryRead(reply.data() + size, 1, most).then([this](std::size_t got) {
      if (got == 0) return kj::Promise<Dial>(Failed{});
      size += got;
      const std::string_view text(reply.data(), size);
      switch (judgeReply(text)) {
        case Line::PARTIAL:
          if (size < reply.size()) return read();
          break;
        case Line::WHOLE:
          return kj::Promise<Dial>(kj::mv(stream));
        case Line::ALIEN:
          break;
      }
      return kj::Promise<Dial>(Tamper{
          .type = TamperClass::HANDSHAKE,
          .frame = digestOf(std::as_bytes(std::span<const char>(text.data(), text.size())))});
    });
  }

  kj::Own<kj::AsyncIoStream> stream;
  const std::string request;
  std::array<char, MAX_HANDSHAKE> reply{};
  std::size_t size = 0;
};

}  // namespace

bool isDialable(const HybridAddress& address, bool allowRootPeer) {
  if (address.path.empty() || address.path.size() >= sizeof(sockaddr_un::sun_path)) return false;
  if (address.path.find('\0') != std::string::npos) return false;
  if (address.uid == UNMAPPED_UID || (address.uid == 0 && !allowRootPeer)) return false;
  return address.port != 0 && address.port != ANY_PORT;
}

std::string hybridPath(std::string_view socketsDirectory, std::uint32_t cid) {
  return std::string(socketsDirectory)
      .append("/")
      .append(std::to_string(cid))
      .append("/vsock.sock");
}

struct HybridTransport::Impl {
  kj::LowLevelAsyncIoProvider& provider;
  kj::Timer& timer;
  HybridAddress address;
  kj::TimePoint nextDial;
  bool mismatched = false;

  kj::Promise<Connection> attempt(unsigned number) {
    // Dials that wait take their turns one pace apart.
    const kj::TimePoint turn = kj::max(timer.now(), nextDial);
    nextDial = turn + DIAL_PACE;
    auto dialled = turn > timer.now() ? timer.atTime(turn).then([this]() { return dial(); })
                                      : kj::evalNow([this]() { return dial(); });
    return dialled.then([this, number](Dial&& result) -> kj::Promise<Connection> {
      if (auto* stream = std::get_if<kj::Own<kj::AsyncIoStream>>(&result))
        return Connection(kj::mv(*stream));
      if (const auto* tamper = std::get_if<Tamper>(&result)) return Connection(*tamper);
      if (number == DIAL_ATTEMPTS) return Connection(Unreachable{});
      return timer.afterDelay(DIAL_BACKOFF * number).then([this, number]() {
        return attempt(number + 1);
      });
    });
  }

  kj::Promise<Dial> dial() {
    // Another operation may have met the wrong peer meanwhile.
    if (mismatched) return Dial(Tamper{.type = TamperClass::PEER_MISMATCH, .frame = std::nullopt});
    auto connected = open();
    KJ_IF_MAYBE (fd, connected) {
      if (!isExpectedPeer(*fd)) {
        mismatched = true;
        return Dial(Tamper{.type = TamperClass::PEER_MISMATCH, .frame = std::nullopt});
      }
      auto stream =
          provider.wrapSocketFd(kj::mv(*fd), kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC |
                                                 kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK);
      auto handshake = kj::heap<Handshake>(kj::mv(stream), address.port);
      auto promise = kj::evalNow([&]() { return handshake->run(); })
                         .catch_([](kj::Exception&& exception) -> kj::Promise<Dial> {
                           if (exception.getType() == kj::Exception::Type::DISCONNECTED)
                             return Dial(Failed{});
                           return kj::mv(exception);
                         })
                         .attach(kj::mv(handshake));
      return promise.exclusiveJoin(
          timer.afterDelay(HANDSHAKE_DEADLINE).then([]() -> Dial { return Failed{}; }));
    }
    return Dial(Failed{});
  }

  // Nothing where the dial failed. A Unix socket connects at once or not at all.
  kj::Maybe<kj::AutoCloseFd> open() const {
    int raw = -1;
    KJ_SYSCALL(raw = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    kj::AutoCloseFd fd(raw);
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path, address.path.data(), address.path.size());
    const auto length =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.path.size() + 1);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), length) != 0) return nullptr;
    return kj::mv(fd);
  }

  [[nodiscard]] bool isExpectedPeer(int fd) const {
    ucred peer{};
    socklen_t length = sizeof(peer);
    KJ_SYSCALL(::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length));
    return length == sizeof(peer) && peer.uid != UNMAPPED_UID && peer.uid == address.uid;
  }
};

HybridTransport::HybridTransport(kj::LowLevelAsyncIoProvider& provider, kj::Timer& timer,
                                 HybridAddress address, bool allowRootPeer)
    : impl(kj::heap<Impl>(Impl{.provider = provider,
                               .timer = timer,
                               .address = std::move(address),
                               .nextDial = timer.now()})) {
  KJ_REQUIRE(isDialable(impl->address, allowRootPeer));
}

HybridTransport::~HybridTransport() noexcept(false) = default;

kj::Promise<Transport::Connection> HybridTransport::connect() {
  return impl->attempt(1);
}

}  // namespace cordon::parser
