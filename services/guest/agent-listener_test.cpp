// Connections: who may, how many, how long, and what a broken listener does.
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "common/channel/encoder.h"
#include "services/guest/agent-fixture.h"
#include "services/guest/workers.h"
#include "tests/support/residue.h"

namespace cordon::guest {
namespace {

using channel::Ping;
using channel::Pong;

class ListenerTest : public AgentTest {
 protected:
  static std::string pingFrame() {
    return std::get<std::string>(channel::encodeMessage({freshId(), Ping{}}, {}));
  }
  static bool readable(const Fd& socket, int timeoutMs) {
    pollfd polled{socket.get(), POLLIN, 0};
    return ::poll(&polled, 1, timeoutMs) == 1;
  }
};

std::string outputOf(const std::string& command, int& status) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 256> piece;
  while (std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe)) {
    text.append(piece.data(), count);
  }
  status = ::pclose(pipe);
  return text;
}

TEST_F(ListenerTest, SaysItsVersionAndRefusesUnknownArguments) {
  int status = -1;
  EXPECT_EQ(outputOf(CORDON_GUEST_BINARY " --version", status),
            "cordon-guest " CORDON_VERSION " protocol 3\n");
  EXPECT_EQ(status, 0);
  EXPECT_NE(
      outputOf(CORDON_GUEST_BINARY " --verbose 2>&1", status).find("unknown option --verbose"),
      std::string::npos);
  EXPECT_EQ(WEXITSTATUS(status), 2);
}

TEST_F(ListenerTest, AStrangerGetsNoByteAndNoEntry) {
  start();
  ASSERT_EQ(::chmod(socketPath.c_str(), 0777), 0);
  std::size_t before = diag().size();
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::setgid(World::POSTGRES) != 0 || ::setuid(World::POSTGRES) != 0) ::_exit(100);
    Fd socket = connect();
    if (!socket.valid()) ::_exit(101);
    (void)send(socket, pingFrame());
    char byte = 0;
    ::_exit(::recv(socket.get(), &byte, 1, 0) <= 0 ? 0 : 102);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  std::size_t after = diag().size();
  EXPECT_EQ(after, before + 1) << "more than the entry of the second diag itself";
}

TEST_F(ListenerTest, ThePeerMayBeTheAgentsOwnUid) {
  ASSERT_EQ(::chown(world.root.c_str(), World::POSTGRES, World::POSTGRES), 0);
  start({}, 0, World::POSTGRES);
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::setgid(World::POSTGRES) != 0 || ::setuid(World::POSTGRES) != 0) ::_exit(100);
    Fd socket = connect();
    (void)send(socket, pingFrame());
    ::_exit(receive(socket).message ? 0 : 102);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ASSERT_EQ(::chown(world.root.c_str(), 0, 0), 0);
}

TEST_F(ListenerTest, ASilentPeerLosesItsConnection) {
  start({"--idle-timeout-ms", "200"});
  std::string frame = pingFrame();
  // Nothing at all; a part of a header; a part of a payload.
  for (std::size_t sent : {std::size_t{0}, std::size_t{3}, frame.size() - 1}) {
    auto began = std::chrono::steady_clock::now();
    Fd socket = connect();
    ASSERT_TRUE(send(socket, std::string_view(frame).substr(0, sent)));
    auto got = receive(socket);
    EXPECT_FALSE(got.message);
    EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(200));
  }
  auto entry = diagEntry("decode-failed");
  ASSERT_TRUE(entry);
  EXPECT_NE(entry->detail.find("idle"), std::string::npos);
  // A peer that is slow but never idle is served.
  Fd socket = connect();
  for (char byte : frame) {
    ASSERT_TRUE(send(socket, std::string_view(&byte, 1)));
    shortNap();
  }
  receive(socket).as<Pong>();
}

TEST_F(ListenerTest, APeerThatTakesNothingLosesItsReplyButNotTheResult) {
  start({"--idle-timeout-ms", "200"});
  channel::Message message{freshId(), shell("head -c 4000000 /dev/zero")};
  {
    Fd socket = connect();
    ASSERT_TRUE(send(socket, std::get<std::string>(channel::encodeMessage(message, {}))));
    EXPECT_TRUE(eventually([&] { return diagEntry("reply-write-failed").has_value(); }));
  }
  EXPECT_EQ(diagEntry("reply-write-failed")->requestId, channel::toHex(message.id));
  EXPECT_EQ(call(message).bulk.size(), 4000000U);
}

TEST_F(ListenerTest, ACommandMayRunLongerThanTheIdleTimeout) {
  start({"--idle-timeout-ms", "100"});
  EXPECT_EQ(stdoutOf(run("sleep 0.5; echo there")), "there\n");
}

TEST_F(ListenerTest, BytesBehindTheRequestAreIgnored) {
  start();
  Fd socket = connect();
  ASSERT_TRUE(send(socket, pingFrame() + "more"));
  EXPECT_TRUE(receive(socket).message);
}

TEST_F(ListenerTest, ConnectionsOver512WaitForASlot) {
  rlimit files{4096, 4096};
  rlimit own{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &own), 0);
  own.rlim_cur = std::max<rlim_t>(own.rlim_cur, std::min<rlim_t>(own.rlim_max, 2048));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &own), 0);
  start({}, files.rlim_max);
  std::vector<Fd> idle;
  for (std::size_t count = 0; count < MAX_ACTIVE_CONNECTIONS; ++count) {
    idle.push_back(connect());
    ASSERT_TRUE(idle.back().valid()) << count;
  }
  std::vector<Fd> waiting;
  for (int count = 0; count < 88; ++count) {
    waiting.push_back(connect());
    ASSERT_TRUE(waiting.back().valid()) << count;
    ASSERT_TRUE(send(waiting.back(), pingFrame()));
  }
  EXPECT_FALSE(readable(waiting.front(), 200)) << "a 513th connection was served";
  // Each slot serves those that wait, one after the other.
  idle[7].reset();
  for (const Fd& socket : waiting) EXPECT_TRUE(receive(socket).message);
  idle.clear();
  ask(Ping{}).as<Pong>();
}

TEST_F(ListenerTest, SixHundredConnectionsAtOnceAreAllServed) {
  rlimit own{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &own), 0);
  own.rlim_cur = std::max<rlim_t>(own.rlim_cur, std::min<rlim_t>(own.rlim_max, 2048));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &own), 0);
  start();
  std::vector<Fd> sockets;
  for (int count = 0; count < 600; ++count) {
    sockets.push_back(connect());
    ASSERT_TRUE(sockets.back().valid()) << count;
  }
  for (const Fd& socket : sockets) ASSERT_TRUE(send(socket, pingFrame()));
  for (const Fd& socket : sockets) EXPECT_TRUE(receive(socket).message);
  EXPECT_EQ(ask(channel::Diag{}).as<channel::DiagResult>().listenerRestarts, 0);
}

TEST_F(ListenerTest, AListenerThatCannotAcceptIsReplacedAndCounted) {
  // So few descriptors that idle connections use them up and accept fails with EMFILE.
  start({}, 24);
  std::vector<Fd> idle;
  for (int count = 0; count < 40; ++count) {
    Fd socket = connect();
    if (socket.valid()) idle.push_back(std::move(socket));
  }
  // Eight failures at 10 ms: the listener is closed and made anew. Then the descriptors come back.
  shortNap();
  auto served = [&] {
    idle.clear();
    Fd socket = connect();
    return socket.valid() && send(socket, pingFrame()) && receive(socket).message.has_value();
  };
  auto restarts = [&]() -> std::int64_t {
    if (!served()) return 0;
    auto got = ask(channel::Diag{});
    return got.message ? got.as<channel::DiagResult>().listenerRestarts : 0;
  };
  for (int wait = 0; wait < 40; ++wait) shortNap();
  EXPECT_TRUE(eventually([&] { return restarts() >= 1; }));
  auto failed = diagEntry("accept-failed");
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->level, channel::DiagLevel::WARN);
  auto restarted = diagEntry("listener-restarted");
  ASSERT_TRUE(restarted);
  EXPECT_EQ(restarted->level, channel::DiagLevel::ERROR);
}

TEST_F(ListenerTest, ListeningIsTriedUntilItSucceeds) {
  std::string later = world.root + "/later";
  socketPath = later + "/agent.sock";
  const pid_t parent = ::getpid();
  pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    tests::dieWith(parent);
    std::string listen = "unix:" + socketPath;
    ::execl(CORDON_GUEST_BINARY, CORDON_GUEST_BINARY, "--listen", listen.c_str(), nullptr);
    ::_exit(125);
  }
  // The agent tries, fails and sleeps; only then is there a place to listen at.
  std::string wchan = "/proc/" + std::to_string(pid) + "/stat";
  ASSERT_TRUE(eventually([&] { return readWhole(wchan).find(") S ") != std::string::npos; }));
  std::filesystem::create_directory(later);
  ASSERT_TRUE(eventually([&] { return connect().valid(); }));
  auto entry = diagEntry("listen-failed");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->level, channel::DiagLevel::ERROR);
  EXPECT_TRUE(diagEntry("listening"));
  std::filesystem::remove_all(later);
}

}  // namespace
}  // namespace cordon::guest
