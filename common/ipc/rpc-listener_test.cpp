#include "common/ipc/rpc-listener.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/ipc/testing/peers.h"

namespace cordon::ipc {
namespace {

using namespace testing;
using Kind = ConnectionEvent::Kind;

sockaddr_un address(const std::string& path) {
  sockaddr_un result{};
  result.sun_family = AF_UNIX;
  std::strncpy(result.sun_path, path.c_str(), sizeof(result.sun_path) - 1);
  return result;
}

kj::AutoCloseFd newSocket() {
  return kj::AutoCloseFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// A listener on a socket that every uid may connect to.
class ListenerTest : public ::testing::Test, protected Loop {
 protected:
  ListenerTest() {
    std::string pattern = ::testing::TempDir() + "cordon-listener-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
    directory = pattern;
    path = directory + "/s";
    ::chmod(directory.c_str(), 0711);
  }
  ~ListenerTest() noexcept override { std::filesystem::remove_all(directory); }

  void listen(ListenerRules rules, PeerLimits limits = quickLimits()) {
    auto socket = newSocket();
    const auto name = address(path);
    ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
    ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
    ASSERT_EQ(::listen(socket, 16), 0);
    rules.backOff = 5 * kj::MILLISECONDS;
    listener = kj::heap<RpcListener>(
        kj::mv(socket), io.unixEventPort, *io.lowLevelProvider, timer(), std::move(rules), limits,
        [](uid_t) { return capnp::Capability::Client(kj::heap<ScriptedSource>(giveZeros)); },
        [this](const ConnectionEvent& event) { events.push_back(event); });
    running = listener->run().eagerlyEvaluate(nullptr);
  }
  // Connects as another user, as SO_PEERCRED then says.
  kj::AutoCloseFd connectAs(uid_t uid) {
    auto socket = newSocket();
    const auto name = address(path);
    EXPECT_EQ(::seteuid(uid), 0);
    EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0)
        << std::strerror(errno);
    EXPECT_EQ(::seteuid(0), 0);
    return socket;
  }
  kj::AutoCloseFd connect() {
    auto socket = newSocket();
    const auto name = address(path);
    EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0)
        << std::strerror(errno);
    return socket;
  }
  ConnectionEvent nextEvent() {
    while (seen == events.size()) timer().afterDelay(1 * kj::MILLISECONDS).wait(io.waitScope);
    return events[seen++];
  }
  bool serves(kj::AutoCloseFd socket) {
    auto stream = io.lowLevelProvider->wrapSocketFd(
        kj::mv(socket), kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC |
                            kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK);
    capnp::TwoPartyClient client(*stream);
    auto request = client.bootstrap().castAs<protocols::ByteSource>().readRequest();
    request.setSize(10);
    return request.send()
        .then([](auto&& answer) { return answer.getBytes().size() == 10; },
              [](kj::Exception&&) { return false; })
        .wait(io.waitScope);
  }

  std::string directory;
  std::string path;
  std::vector<ConnectionEvent> events;
  std::size_t seen = 0;
  kj::Own<RpcListener> listener;
  kj::Promise<void> running = nullptr;
};

ListenerRules ownUidOnly() {
  return {.allowedUids = {::geteuid()}};
}

TEST_F(ListenerTest, ServesAnAllowedUid) {
  listen(ownUidOnly());
  EXPECT_TRUE(serves(connect()));
  const auto event = nextEvent();
  EXPECT_EQ(event.kind, Kind::ACCEPTED);
  EXPECT_EQ(event.uid, ::geteuid());
  const auto end = nextEvent();
  EXPECT_EQ(end.kind, Kind::ENDED);
  EXPECT_EQ(end.reason, ErrorCode::DISCONNECTED);
  EXPECT_EQ(listener->connections(), 0u);
}

TEST_F(ListenerTest, RefusesAnotherUidBeforeAByteIsRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "SKIPPED(host-lacks:root)";
  listen({.allowedUids = {4242}});
  // Positive control: the same attempt by the uid that is allowed.
  EXPECT_TRUE(serves(connectAs(4242)));
  EXPECT_EQ(nextEvent().kind, Kind::ACCEPTED);
  EXPECT_EQ(nextEvent().kind, Kind::ENDED);

  EXPECT_FALSE(serves(connectAs(4243)));
  const auto refused = nextEvent();
  EXPECT_EQ(refused.kind, Kind::REFUSED);
  EXPECT_EQ(refused.reason, ErrorCode::PEER_REFUSED);
  EXPECT_EQ(refused.uid, 4243u);
}

TEST_F(ListenerTest, RefusesRootUnlessItIsNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "SKIPPED(host-lacks:root)";
  listen({.allowedUids = {4242}});
  EXPECT_FALSE(serves(connect()));
  EXPECT_EQ(nextEvent().reason, ErrorCode::PEER_REFUSED);
}

TEST_F(ListenerTest, RefusesTheUidOfUnmappedUsersEvenWhereItIsNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "SKIPPED(host-lacks:root)";
  listen({.allowedUids = {OVERFLOW_UID, 0}});
  EXPECT_FALSE(serves(connectAs(OVERFLOW_UID)));
  const auto refused = nextEvent();
  EXPECT_EQ(refused.kind, Kind::REFUSED);
  EXPECT_EQ(refused.uid, OVERFLOW_UID);
}

TEST_F(ListenerTest, RefusesTheConnectionAboveItsLimitAndTakesTheNextWhenOneWent) {
  auto rules = ownUidOnly();
  rules.connections = 2;
  listen(rules);
  auto first = connect();
  auto second = connect();
  EXPECT_EQ(nextEvent().kind, Kind::ACCEPTED);
  EXPECT_EQ(nextEvent().kind, Kind::ACCEPTED);
  EXPECT_FALSE(serves(connect()));
  const auto refused = nextEvent();
  EXPECT_EQ(refused.kind, Kind::REFUSED);
  EXPECT_EQ(refused.reason, ErrorCode::TOO_MANY_CONNECTIONS);
  first = nullptr;
  EXPECT_EQ(nextEvent().kind, Kind::ENDED);
  EXPECT_TRUE(serves(connect()));
}

TEST_F(ListenerTest, AFaultyPeerEndsItsOwnConnectionOnly) {
  listen(ownUidOnly());
  auto bad = connect();
  auto good = connect();
  const std::uint32_t wrapped[] = {0xffffffff, 0};
  ASSERT_EQ(::write(bad, wrapped, sizeof(wrapped)), static_cast<ssize_t>(sizeof(wrapped)));
  EXPECT_EQ(nextEvent().kind, Kind::ACCEPTED);
  EXPECT_EQ(nextEvent().kind, Kind::ACCEPTED);
  const auto end = nextEvent();
  EXPECT_EQ(end.kind, Kind::ENDED);
  EXPECT_EQ(end.reason, ErrorCode::BAD_MESSAGE);
  EXPECT_TRUE(serves(kj::mv(good)));
}

// All descriptors of this process but those that are open, until it is destroyed.
class NoDescriptorLeft {
 public:
  NoDescriptorLeft() {
    ::getrlimit(RLIMIT_NOFILE, &before);
    rlimit low = before;
    low.rlim_cur = 256;
    ::setrlimit(RLIMIT_NOFILE, &low);
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) fillers.emplace_back(fd);
  }
  ~NoDescriptorLeft() { ::setrlimit(RLIMIT_NOFILE, &before); }
  NoDescriptorLeft(const NoDescriptorLeft&) = delete;
  NoDescriptorLeft& operator=(const NoDescriptorLeft&) = delete;

 private:
  rlimit before{};
  std::vector<kj::AutoCloseFd> fillers;
};

TEST_F(ListenerTest, SurvivesTheWantOfDescriptors) {
#ifdef CORDON_SANITIZED
  GTEST_SKIP() << "SKIPPED(sanitizer): UBSan tests memory by a pipe, for which no descriptor is "
                  "left; see release";
#endif
  listen(ownUidOnly());
  auto waiting = connect();
  {
    NoDescriptorLeft none;
    const auto failed = nextEvent();
    EXPECT_EQ(failed.kind, Kind::ACCEPT_FAILED);
    EXPECT_EQ(failed.error, EMFILE);
    // The client is not left waiting: it is let go of with the descriptor in reserve.
    const auto refused = nextEvent();
    EXPECT_EQ(refused.kind, Kind::REFUSED);
    EXPECT_EQ(refused.reason, ErrorCode::TOO_MANY_CONNECTIONS);
    char byte = 0;
    EXPECT_EQ(::read(waiting, &byte, 1), 0);
  }
  EXPECT_TRUE(serves(connect()));
  EXPECT_EQ(nextEvent().kind, Kind::ACCEPTED);
  EXPECT_EQ(nextEvent().kind, Kind::ENDED);
  // The reserve is back: it works a second time.
  waiting = connect();
  NoDescriptorLeft none;
  EXPECT_EQ(nextEvent().error, EMFILE);
  EXPECT_EQ(nextEvent().kind, Kind::REFUSED);
}

}  // namespace
}  // namespace cordon::ipc
