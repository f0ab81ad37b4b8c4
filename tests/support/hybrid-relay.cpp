#include "tests/support/hybrid-relay.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/debug.h>
#include <kj/io.h>

namespace cordon::tests {
namespace {

constexpr std::size_t CHUNK = 65536;

sockaddr_un addressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  KJ_REQUIRE(path.size() < sizeof(address.sun_path), path.c_str());
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

kj::AutoCloseFd unixSocket() {
  int fd = -1;
  KJ_SYSCALL(fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return kj::AutoCloseFd(fd);
}

// Of this thread alone: the C library's would change all.
void becomeUser(uid_t uid) {
  if (uid == ::geteuid()) return;
  KJ_SYSCALL(::syscall(SYS_setresuid, -1, uid, -1));
}

}  // namespace

std::function<std::optional<std::uint64_t>(unsigned)> randomCuts(std::uint32_t seed,
                                                                 unsigned percent,
                                                                 std::uint64_t most) {
  return [=](unsigned number) -> std::optional<std::uint64_t> {
    std::minstd_rand random(seed + 7919 * number);
    random.discard(3);
    if (random() % 100 >= percent) return std::nullopt;
    return random() % most;
  };
}

class HybridRelay::Loop final : private kj::TaskSet::ErrorHandler {
 public:
  Loop(HybridRelay& of, kj::AsyncIoContext& context)
      : relay(of), io(context), timer(context.provider->getTimer()), tasks(*this) {}

  kj::Promise<void> accept(kj::ConnectionReceiver& listener) {
    return listener.accept().then([this, &listener](kj::Own<kj::AsyncIoStream>&& host) {
      const unsigned number = ++relay.accepted;
      auto line = kj::heap<Line>(*this, kj::mv(host), number);
      auto life = line->run();
      tasks.add(life.attach(kj::mv(line)));
      return accept(listener);
    });
  }

 private:
  // One connection.
  struct Line {
    Line(Loop& of, kj::Own<kj::AsyncIoStream> from, unsigned number)
        : loop(of), faults(of.relay.faults), host(kj::mv(from)) {
      if (faults.cutAfter) left = faults.cutAfter(number);
    }
    KJ_DISALLOW_COPY(Line);

    kj::Promise<void> run() {
      return readRequest()
          .then([this]() { return wait(); })
          .then([this]() -> kj::Promise<void> {
            if (!connectAgent()) return kj::READY_NOW;  // closed without an OK, as a device does
            return greetAgent().then([this]() { return relayBothWays(); });
          })
          .then([this]() -> kj::Promise<void> {
            if (!faults.neverCloses) return kj::READY_NOW;
            return host->whenWriteDisconnected();
          });
    }

    kj::Promise<void> wait() {
      if (faults.roundTrip == 0 * kj::SECONDS) return kj::READY_NOW;
      return loop.timer.afterDelay(faults.roundTrip);
    }

    kj::Promise<void> readRequest() {
      return host->tryRead(upward.data(), 1, 1).then([this](std::size_t size) -> kj::Promise<void> {
        if (size == 0) return KJ_EXCEPTION(DISCONNECTED, "hung up in the handshake");
        request.push_back(static_cast<char>(upward[0]));
        if (request.back() != '\n' && request.size() < 32) return readRequest();
        if (request.starts_with("CONNECT ") && request.ends_with('\n')) return kj::READY_NOW;
        return KJ_EXCEPTION(FAILED, "not a handshake", request.c_str());
      });
    }

    bool connectAgent() {
      kj::AutoCloseFd fd = unixSocket();
      const sockaddr_un to = addressOf(loop.relay.address.agent);
      if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) return false;
      agent = loop.io.lowLevelProvider->wrapSocketFd(kj::mv(fd));
      return true;
    }

    kj::Promise<void> greetAgent() {
      if (!loop.relay.address.port) return kj::READY_NOW;
      const kj::StringPtr line = greeting = kj::str("CONNECT ", *loop.relay.address.port, "\n");
      return agent->write(line.begin(), line.size()).then([this]() { return readAnswer(); });
    }

    // Byte by byte: what stands behind the line belongs to the host.
    kj::Promise<void> readAnswer() {
      return agent->tryRead(downward.data(), 1, 1)
          .then([this](std::size_t size) -> kj::Promise<void> {
            if (size == 0) return KJ_EXCEPTION(DISCONNECTED, "the device refused");
            if (downward[0] != '\n') return readAnswer();
            return kj::READY_NOW;
          });
    }

    kj::Promise<void> relayBothWays() {
      return host->write("OK 1073741824\n", 14).then([this]() {
        auto up = pump(*host, *agent, upward, false);
        auto down = wait().then([this]() { return pump(*agent, *host, downward, true); });
        // The agent ends a connection; what the host still sends then goes nowhere.
        return down.exclusiveJoin(up.then([]() { return kj::Promise<void>(kj::NEVER_DONE); }));
      });
    }

    kj::Promise<void> pump(kj::AsyncIoStream& from, kj::AsyncIoStream& to,
                           std::array<kj::byte, CHUNK>& buffer, bool isReply) {
      return from.tryRead(buffer.data(), 1, buffer.size())
          .then([this, &from, &to, &buffer, isReply](std::size_t size) -> kj::Promise<void> {
            if (size == 0) return kj::READY_NOW;
            bool cut = false;
            if (left) {
              cut = size >= *left;
              size = static_cast<std::size_t>(std::min<std::uint64_t>(size, *left));
              *left -= size;
            }
            auto written = isReply && faults.dribbles ? dribble(to, buffer.data(), size)
                                                      : to.write(buffer.data(), size);
            return written.then([this, &from, &to, &buffer, isReply, cut]() -> kj::Promise<void> {
              if (cut) return KJ_EXCEPTION(DISCONNECTED, "cut");
              return pump(from, to, buffer, isReply);
            });
          });
    }

    kj::Promise<void> dribble(kj::AsyncIoStream& to, const kj::byte* bytes, std::size_t size) {
      if (size == 0) return kj::READY_NOW;
      return to.write(bytes, 1).then([this, &to, bytes, size]() {
        return kj::evalLater(
            [this, &to, bytes, size]() { return dribble(to, bytes + 1, size - 1); });
      });
    }

    Loop& loop;
    const RelayFaults& faults;
    kj::Own<kj::AsyncIoStream> host;
    kj::Own<kj::AsyncIoStream> agent;
    std::string request;
    kj::String greeting;
    std::optional<std::uint64_t> left;
    std::array<kj::byte, CHUNK> upward{};
    std::array<kj::byte, CHUNK> downward{};
  };

  void taskFailed(kj::Exception&& exception) override {
    // A connection that one side broke is what this is for.
    if (exception.getType() != kj::Exception::Type::DISCONNECTED)
      KJ_LOG(ERROR, "relay", exception.getDescription());
  }

  HybridRelay& relay;
  kj::AsyncIoContext& io;
  kj::Timer& timer;
  kj::TaskSet tasks;
};

HybridRelay::HybridRelay(RelayAddress where, RelayFaults how)
    : address(std::move(where)), faults(std::move(how)) {
  kj::AutoCloseFd listener = unixSocket();
  const sockaddr_un at = addressOf(address.hybrid);
  KJ_SYSCALL(::bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof(at)));
  KJ_SYSCALL(::chmod(address.hybrid.c_str(), 0666));
  KJ_SYSCALL(::pipe2(stopPipe, O_CLOEXEC));
  std::atomic<bool> listens = false;
  thread = std::thread([this, fd = listener.get(), &listens]() {
    // SO_PEERCRED shows who called listen().
    becomeUser(address.uid);
    KJ_SYSCALL(::listen(fd, 64));
    listens = true;
    listens.notify_one();
    serve(fd, stopPipe[0]);
  });
  listens.wait(false);
  listener.release();
}

HybridRelay::~HybridRelay() {
  ::close(stopPipe[1]);
  thread.join();
  ::close(stopPipe[0]);
  ::unlink(address.hybrid.c_str());
}

void HybridRelay::serve(int listener, int stop) {
  auto io = kj::setupAsyncIo();
  auto receiver = io.lowLevelProvider->wrapListenSocketFd(
      kj::AutoCloseFd(listener), kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC);
  kj::UnixEventPort::FdObserver stopped(io.unixEventPort, stop,
                                        kj::UnixEventPort::FdObserver::OBSERVE_READ);
  Loop loop(*this, io);
  loop.accept(*receiver).exclusiveJoin(stopped.whenBecomesReadable()).wait(io.waitScope);
}

}  // namespace cordon::tests
