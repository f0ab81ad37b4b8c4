#include "services/parser/hybrid-dial.h"

#include <cstring>
#include <functional>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>
#include <kj/debug.h>

#include "tests/support/hybrid-relay.h"
#include "tests/support/temporary-directory.h"

namespace cordon::parser {
namespace {

constexpr uid_t STRANGER = 64321;

// A hybrid socket that does with each connection what a test says, in a thread of its own.
class Device {
 public:
  using Serve = std::function<void(int fd, unsigned number)>;
  Device(const std::string& path, Serve what) : serve(std::move(what)) {
    listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, path.data(), path.size());
    KJ_SYSCALL(::bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof(at)));
    KJ_SYSCALL(::listen(listener, 16));
    thread = std::thread([this]() {
      for (;;) {
        const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) return;
        serve(fd, ++accepted);
        ::close(fd);
      }
    });
  }
  ~Device() {
    ::shutdown(listener, SHUT_RDWR);
    thread.join();
    ::close(listener);
  }
  std::atomic<unsigned> accepted = 0;

 private:
  Serve serve;
  int listener = -1;
  std::thread thread;
};

std::string readLine(int fd) {
  std::string line;
  char byte = 0;
  while (line.size() < 64 && ::read(fd, &byte, 1) == 1) {
    line.push_back(byte);
    if (byte == '\n') break;
  }
  return line;
}

void say(int fd, std::string_view text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t size = ::send(fd, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (size < 0) return;
    done += static_cast<std::size_t>(size);
  }
}

std::string nameOf(const Transport::Connection& connection) {
  if (const auto* tamper = std::get_if<Tamper>(&connection)) return std::string(name(tamper->type));
  return std::holds_alternative<Unreachable>(connection) ? "unreachable" : "connected";
}

class HybridDial : public testing::Test {
 public:
  ~HybridDial() noexcept override = default;

 protected:
  HybridTransport transport(uid_t uid) {
    return HybridTransport(*io.lowLevelProvider, io.provider->getTimer(),
                           {.path = directory / "s", .uid = uid, .port = 5000}, true);
  }
  kj::AsyncIoContext io = kj::setupAsyncIo();
  tests::TemporaryDirectory directory;
  const uid_t self = ::geteuid();
};

TEST_F(HybridDial, LeavesEveryByteBehindTheLineUnread) {
  Device device(directory / "s", [](int fd, unsigned) {
    EXPECT_EQ(readLine(fd), "CONNECT 5000\n");
    say(fd, "OK 1\npayload");
  });
  auto to = transport(self);
  auto connection = to.connect().wait(io.waitScope);
  ASSERT_EQ(nameOf(connection), "connected");
  auto& stream = std::get<kj::Own<kj::AsyncIoStream>>(connection);
  EXPECT_EQ(stream->readAllText().wait(io.waitScope), "payload");
}

TEST_F(HybridDial, TakesTheLineByteByByte) {
  Device device(directory / "s", [](int fd, unsigned) {
    readLine(fd);
    for (const char byte : std::string("OK 4294967295\n")) say(fd, {&byte, 1});
  });
  EXPECT_EQ(nameOf(transport(self).connect().wait(io.waitScope)), "connected");
}

TEST_F(HybridDial, AnythingElseThanOkAndAPortIsTamper) {
  const std::vector<std::string> lies{"OK\n",
                                      "OK \n",
                                      "OK 0\n",
                                      "OK 01\n",
                                      "OK -1\n",
                                      "OK +1\n",
                                      "OK 1 \n",
                                      "OK 1\r\n",
                                      "OK  1\n",
                                      "ok 1\n",
                                      "OK1\n",
                                      "OK 4294967296\n",
                                      "OK x\n",
                                      "ERROR\n",
                                      "\n",
                                      " OK 1\n",
                                      "OK 1x\n",
                                      "OK 99999999999999999999999999999\n",
                                      "OK 0x1\n",
                                      "\xff\xff\xff",
                                      "HTTP/1.1 200 OK\r\n\r\n",
                                      std::string("OK 1\0\n", 6),
                                      std::string(4096, 'O')};
  unsigned index = 0;
  Device device(directory / "s", [&](int fd, unsigned number) {
    readLine(fd);
    say(fd, lies.at(number - 1));
  });
  for (const std::string& lie : lies) {
    auto to = transport(self);
    EXPECT_EQ(nameOf(to.connect().wait(io.waitScope)), "handshake") << lie;
    EXPECT_EQ(device.accepted, ++index) << "a lie is not dialled again";
  }
}

TEST_F(HybridDial, EofAtEveryByteIsAFailedDial) {
  const std::string line = "OK 1234\n";
  for (std::size_t cut = 0; cut < line.size(); ++cut) {
    // The first dial is cut, the second is answered.
    const std::string path = directory / ("s" + std::to_string(cut));
    Device device(path, [&](int fd, unsigned number) {
      readLine(fd);
      say(fd, number == 1 ? line.substr(0, cut) : line);
    });
    HybridTransport to(*io.lowLevelProvider, io.provider->getTimer(), {.path = path, .uid = self},
                       true);
    EXPECT_EQ(nameOf(to.connect().wait(io.waitScope)), "connected") << cut;
    EXPECT_EQ(device.accepted, 2u);
  }
}

TEST_F(HybridDial, GivesUpAfterFiveDials) {
  Device device(directory / "s", [](int fd, unsigned) { readLine(fd); });
  auto to = transport(self);
  const auto start = io.provider->getTimer().now();
  EXPECT_EQ(nameOf(to.connect().wait(io.waitScope)), "unreachable");
  EXPECT_EQ(device.accepted, DIAL_ATTEMPTS);
  // 50 + 100 + 150 + 200 ms between them.
  EXPECT_GE(io.provider->getTimer().now() - start, 500 * kj::MILLISECONDS);
}

TEST_F(HybridDial, WhereNobodyListensIsUnreachable) {
  EXPECT_EQ(nameOf(transport(self).connect().wait(io.waitScope)), "unreachable");
}

TEST_F(HybridDial, SilenceIsAFailedDialAfterItsDeadline) {
  // In virtual time: the handshake's deadline, five times, and the pauses between.
  kj::TimerImpl clock(kj::origin<kj::TimePoint>());
  std::vector<int> held;
  std::optional<Device> device;
  device.emplace(directory / "s", [&](int fd, unsigned) {
    readLine(fd);
    held.push_back(::dup(fd));
  });
  HybridTransport to(*io.lowLevelProvider, clock, {.path = directory / "s", .uid = self}, true);
  auto promise = to.connect();
  while (!promise.poll(io.waitScope)) {
    KJ_IF_MAYBE (next, clock.nextEvent()) clock.advanceTo(*next);
  }
  EXPECT_EQ(nameOf(promise.wait(io.waitScope)), "unreachable");
  EXPECT_GE(clock.now() - kj::origin<kj::TimePoint>(), 5 * HANDSHAKE_DEADLINE);
  device.reset();
  for (const int fd : held) ::close(fd);
}

TEST_F(HybridDial, PacesItsDials) {
  Device device(directory / "s", [](int fd, unsigned) {
    readLine(fd);
    say(fd, "OK 1\n");
  });
  kj::TimerImpl clock(kj::origin<kj::TimePoint>());
  HybridTransport to(*io.lowLevelProvider, clock, {.path = directory / "s", .uid = self}, true);
  auto first = to.connect();
  auto second = to.connect();
  auto third = to.connect();
  // The first dials at once, the others have their turns 2 and 4 ms later.
  EXPECT_FALSE(second.poll(io.waitScope));
  EXPECT_EQ(KJ_ASSERT_NONNULL(clock.nextEvent()) - clock.now(), DIAL_PACE);
  clock.advanceTo(clock.now() + DIAL_PACE);
  EXPECT_EQ(nameOf(first.wait(io.waitScope)), "connected");
  EXPECT_EQ(nameOf(second.wait(io.waitScope)), "connected");
  EXPECT_FALSE(third.poll(io.waitScope));
  clock.advanceTo(clock.now() + DIAL_PACE);
  EXPECT_EQ(nameOf(third.wait(io.waitScope)), "connected");
}

TEST_F(HybridDial, AnotherPeerIsToldNothingAndNeverDialledAgain) {
  std::string heard;
  Device device(directory / "s", [&](int fd, unsigned) { heard += readLine(fd); });
  auto to = transport(STRANGER);
  EXPECT_EQ(nameOf(to.connect().wait(io.waitScope)), "peer-mismatch");
  EXPECT_EQ(nameOf(to.connect().wait(io.waitScope)), "peer-mismatch");
  // The control: with the right uid the same device is told.
  auto right = transport(self);
  right.connect().wait(io.waitScope);
  EXPECT_EQ(device.accepted, 1u + DIAL_ATTEMPTS);
  EXPECT_EQ(heard.substr(0, 13), "CONNECT 5000\n");
  EXPECT_EQ(heard.size(), 13u * DIAL_ATTEMPTS);
}

TEST_F(HybridDial, SeesTheUidThatListened) {
  if (self != 0) GTEST_SKIP() << "SKIPPED(needs:root): cannot listen as another uid";
  tests::HybridRelay relay(
      {.hybrid = directory / "s", .agent = directory / "none", .uid = STRANGER});
  EXPECT_EQ(nameOf(transport(0).connect().wait(io.waitScope)), "peer-mismatch");
  // Nobody is behind the relay, but the peer is the right one.
  EXPECT_EQ(nameOf(transport(STRANGER).connect().wait(io.waitScope)), "unreachable");
  // An unmapped uid can belong to anybody.
  tests::HybridRelay unmapped(
      {.hybrid = directory / "u", .agent = directory / "none", .uid = UNMAPPED_UID});
  EXPECT_FALSE(isDialable({.path = directory / "u", .uid = UNMAPPED_UID}, true));
  HybridTransport to(*io.lowLevelProvider, io.provider->getTimer(),
                     {.path = directory / "u", .uid = STRANGER});
  EXPECT_EQ(nameOf(to.connect().wait(io.waitScope)), "peer-mismatch");
}

TEST_F(HybridDial, DroppingTheDialClosesIt) {
  std::atomic<bool> closed = false;
  Device device(directory / "s", [&](int fd, unsigned) {
    readLine(fd);
    char byte = 0;
    closed = ::read(fd, &byte, 1) == 0;
    closed.notify_one();
  });
  auto to = transport(self);
  {
    auto promise = to.connect();
    while (device.accepted == 0) promise.poll(io.waitScope);
  }
  closed.wait(false);
  EXPECT_TRUE(closed);
}

TEST(HybridAddress, IsCheckedBeforeAnythingIsDialled) {
  EXPECT_EQ(hybridPath("/run/cordon/ranges/r", 10000), "/run/cordon/ranges/r/10000/vsock.sock");
  const HybridAddress good{.path = "/s", .uid = 1000, .port = 5000};
  EXPECT_TRUE(isDialable(good, false));
  EXPECT_FALSE(isDialable({.path = "", .uid = 1000}, false));
  EXPECT_FALSE(isDialable({.path = std::string(108, 'p'), .uid = 1000}, false));
  EXPECT_TRUE(isDialable({.path = std::string(107, 'p'), .uid = 1000}, false));
  EXPECT_FALSE(isDialable({.path = std::string("/a\0b", 4), .uid = 1000}, false));
  EXPECT_FALSE(isDialable({.path = "/s", .uid = 0}, false));
  EXPECT_TRUE(isDialable({.path = "/s", .uid = 0}, true));
  EXPECT_FALSE(isDialable({.path = "/s", .uid = 65534}, true));
  EXPECT_FALSE(isDialable({.path = "/s", .uid = 1000, .port = 0}, false));
}

}  // namespace
}  // namespace cordon::parser
