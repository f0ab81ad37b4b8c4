// The whole device but for its process: real sockets, a simulated guest behind a simulated front
// end.
#include "services/vsock/server.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "services/vsock/hybrid/connect-line.h"
#include "services/vsock/testing/front-end-peer.h"

namespace cordon::vsock::testing {
namespace {

using namespace std::chrono_literals;

TEST(ConnectLineTest, ReadsPortsAndNothingElse) {
  EXPECT_EQ(parseConnectLine("CONNECT 0"), 0U);
  EXPECT_EQ(parseConnectLine("CONNECT 5000"), 5000U);
  EXPECT_EQ(parseConnectLine("CONNECT 4294967294"), 4294967294U);
  for (const char* bad :
       {"", "CONNECT", "CONNECT ", "CONNECT  5000", " CONNECT 5000", "connect 5000",
        "CONNECT\t5000", "CONNECT 5000 ", "CONNECT 5000\r", "CONNECT +1", "CONNECT -1",
        "CONNECT 01", "CONNECT 0x10", "CONNECT 4294967295", "CONNECT 4294967296",
        "CONNECT 99999999999", "CONNECT 5000 1", "CONNECTED 1", "OK 5"}) {
    EXPECT_EQ(parseConnectLine(bad), std::nullopt) << '"' << bad << '"';
  }
  EXPECT_EQ(parseConnectLine(std::string_view("CONNECT 5\0", 10)), std::nullopt);
}

// The listener alone, with a clock of the test's.
class HybridListenerTest : public ::testing::Test {
 protected:
  HybridListenerTest() {
    address.sun_family = AF_UNIX;
    const std::string name = "cordon-hybrid-test-" + std::to_string(::getpid());
    name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
    addressSize = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    socket = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    require(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), addressSize) == 0 &&
                ::listen(socket.get(), 128) == 0,
            "listen");
  }
  Fd dial() {
    Fd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    require(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), addressSize) == 0,
            "dial");
    return client;
  }
  static bool closed(const Fd& client) {
    char byte;
    return ::recv(client.get(), &byte, 1, 0) == 0;
  }

  sockaddr_un address{};
  socklen_t addressSize = 0;
  Fd socket;
  Poller poller;
  Device device{10000};
  TimePoint now{std::chrono::hours(1)};
};

TEST_F(HybridListenerTest, ClosesAClientWithoutALineAtItsDeadlineHoweverSlowlyItWrites) {
  HybridListener listener(socket.get(), 10, device, poller);
  const Fd silent = dial();
  const Fd slow = dial();
  listener.onAcceptable(now);
  for (int second = 0; second < 5; ++second) {
    require(::send(slow.get(), "C", 1, 0) == 1, "write");
    listener.onHandshake(1, now);
    EXPECT_FALSE(closed(silent));
    EXPECT_FALSE(closed(slow));
    now += HybridListener::HANDSHAKE_DEADLINE / 5;
    listener.tick(now);
  }
  EXPECT_TRUE(closed(silent));
  EXPECT_TRUE(closed(slow));
  EXPECT_FALSE(listener.hasHandshakes());
  EXPECT_EQ(device.counters.badHandshakes, 2U);
}

TEST_F(HybridListenerTest, ClosesClientsOverTheCapAndTakesOthersWhenThereIsRoom) {
  HybridListener listener(socket.get(), 2, device, poller);
  const Fd first = dial();
  Fd second = dial();
  const Fd third = dial();
  listener.onAcceptable(now);
  EXPECT_FALSE(closed(first));
  EXPECT_FALSE(closed(second));
  EXPECT_TRUE(closed(third));
  EXPECT_EQ(device.counters.overCap, 1U);
  second.reset();
  listener.onHandshake(1, now);
  const Fd fourth = dial();
  listener.onAcceptable(now);
  EXPECT_FALSE(closed(fourth));
}

TEST_F(HybridListenerTest, LeavesWhatOneTurnCannotTakeToTheNext) {
  HybridListener listener(socket.get(), 1000, device, poller);
  std::vector<Fd> clients;
  for (std::size_t i = 0; i < HybridListener::ACCEPTS_PER_TURN + 1; ++i) clients.push_back(dial());
  listener.onAcceptable(now);
  EXPECT_EQ(device.counters.accepted, HybridListener::ACCEPTS_PER_TURN);
  EXPECT_TRUE(listener.wantsTurn());
  listener.tick(now);
  EXPECT_EQ(device.counters.accepted, clients.size());
  EXPECT_FALSE(listener.wantsTurn());
}

// A serving device, its simulated guest, and clients that dial it.
class ServedDeviceTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t CID = 10000;

  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);  // as main() does
    address.sun_family = AF_UNIX;
    const std::string name = "cordon-vsock-test-" + std::to_string(::getpid());
    name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);  // abstract: nothing to remove
    addressSize = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    listener = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    require(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), addressSize) == 0 &&
                ::listen(listener.get(), 128) == 0,
            "listen");
    ::fcntl(peer.backEnd.get(), F_SETFL, O_NONBLOCK);
    stop = Fd(::eventfd(0, EFD_CLOEXEC));
    ServerOptions options;
    options.vhostUser = peer.backEnd.get();
    options.listener = listener.get();
    options.signals = stop.get();
    options.cid = CID;
    server.emplace(options, log);
    ASSERT_TRUE(server->watch());
    thread = std::thread([this] { exitCode = server->run(); });
    peer.start();
    peer.guest->offer();
    peer.send(Request::GET_QUEUE_NUM);
    ASSERT_EQ(peer.replyNumber(), 2U);  // everything before it is done
    peer.kick(RX_QUEUE);
  }
  void TearDown() override {
    const std::uint64_t one = 1;
    if (thread.joinable()) {
      require(::write(stop.get(), &one, sizeof(one)) == sizeof(one), "stop");
      thread.join();
      EXPECT_EQ(exitCode, 0);
    }
  }

  Fd dial() {
    Fd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval deadline{20, 0};
    ::setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
    require(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), addressSize) == 0,
            "dial");
    return client;
  }
  static void write(const Fd& client, std::string_view bytes) {
    require(::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()),
            "client's write");
  }
  // What the client reads next; empty at the end, "reset" where the device closed with bytes
  // unread.
  static std::string read(const Fd& client, std::size_t most = 4096) {
    std::string bytes(most, '\0');
    const ssize_t got = ::recv(client.get(), bytes.data(), most, 0);
    if (got < 0)
      return errno == ECONNRESET ? "reset" : std::string("error ") + std::strerror(errno);
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }
  // The next packet for the guest, waited for by its interrupt.
  Packet next(std::uint16_t op) {
    Packet packet;
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (!peer.guest->take(packet)) {
      pollfd wait{peer.calls[RX_QUEUE].get(), POLLIN, 0};
      ::poll(&wait, 1, 1000);
      std::uint64_t count;
      [[maybe_unused]] const ssize_t ignored = ::read(wait.fd, &count, sizeof(count));
      if (std::chrono::steady_clock::now() > deadline) {
        ADD_FAILURE() << "no packet of op " << op;
        return packet;
      }
    }
    EXPECT_EQ(packet.header.op, op);
    return packet;
  }
  void send(std::uint32_t hostPort, std::uint16_t op, std::string_view payload = {},
            std::uint32_t flags = 0) {
    PacketHeader header = peer.guest->header(hostPort, 5000, op);
    header.len = static_cast<std::uint32_t>(payload.size());
    header.flags = flags;
    require(peer.guest->send(header, payload), "room in the tx ring");
    peer.kick(TX_QUEUE);
  }
  Fd open(std::uint32_t& hostPort) {
    Fd client = dial();
    write(client, "CONNECT 5000\n");
    hostPort = next(VIRTIO_VSOCK_OP_REQUEST).header.src_port;
    send(hostPort, VIRTIO_VSOCK_OP_RESPONSE);
    EXPECT_EQ(read(client), "OK " + std::to_string(hostPort) + "\n");
    return client;
  }
  void expectAlive() {
    std::uint32_t port = 0;
    const Fd client = open(port);
    send(port, VIRTIO_VSOCK_OP_RW, "alive");
    EXPECT_EQ(read(client), "alive");
  }

  FrontEndPeer peer{CID};
  BoundedLog log{log::Log("cordon-vsock-test", -1, log::Level::ERROR, false)};
  sockaddr_un address{};
  socklen_t addressSize = 0;
  Fd listener;
  Fd stop;
  std::optional<Server> server;
  std::thread thread;
  std::atomic<int> exitCode{-1};
};

TEST_F(ServedDeviceTest, ConnectsAClientAndPassesBytesBothWays) {
  std::uint32_t port = 0;
  const Fd client = open(port);
  write(client, "to the guest");
  EXPECT_EQ(next(VIRTIO_VSOCK_OP_RW).payload, "to the guest");
  send(port, VIRTIO_VSOCK_OP_RW, "to the host");
  EXPECT_EQ(read(client), "to the host");
}

TEST_F(ServedDeviceTest, KeepsTheBytesBehindTheConnectLineForTheGuest) {
  const Fd client = dial();
  write(client, "CONNECT 5000\nfirst\nsecond");
  const std::uint32_t port = next(VIRTIO_VSOCK_OP_REQUEST).header.src_port;
  send(port, VIRTIO_VSOCK_OP_RESPONSE);
  EXPECT_EQ(next(VIRTIO_VSOCK_OP_RW).payload, "first\nsecond");
}

TEST_F(ServedDeviceTest, TakesAConnectLineByteByByte) {
  const Fd client = dial();
  for (const char each : std::string_view("CONNECT 5000\n")) write(client, {&each, 1});
  EXPECT_EQ(next(VIRTIO_VSOCK_OP_REQUEST).header.dst_port, 5000U);
}

// §C 2: a client that closed without its newline was the end of a VMM.
TEST_F(ServedDeviceTest, SurvivesAnEndOfFileAtEveryByteOfTheLine) {
  const std::string line = "CONNECT 5000\n";
  for (std::size_t length = 0; length < line.size(); ++length) {
    Fd half = dial();
    write(half, line.substr(0, length));
    ::shutdown(half.get(), SHUT_WR);
    EXPECT_EQ(read(half), "") << length;
    Fd closed = dial();
    write(closed, line.substr(0, length));
  }
  expectAlive();
}

TEST_F(ServedDeviceTest, RefusesLinesThatAreNone) {
  for (const char* bad : {"\n", "CONNECT\n", "connect 5000\n", "CONNECT 5000 \n",
                          "CONNECT 4294967295\n", "CONNECT 12345678901\n", "GET / HTTP/1.1\r\n",
                          "CONNECT 50000000000000000000000000000000"}) {
    const Fd client = dial();
    write(client, bad);
    const std::string answer = read(client);
    EXPECT_TRUE(answer.empty() || answer == "reset") << answer;
  }
  expectAlive();
}

// §C 1: no OK unless the guest listens.
TEST_F(ServedDeviceTest, ClosesWithoutOkWhereTheGuestRefuses) {
  const Fd client = dial();
  write(client, "CONNECT 5001\n");
  const Packet request = next(VIRTIO_VSOCK_OP_REQUEST);
  EXPECT_EQ(request.header.dst_port, 5001U);
  PacketHeader refusal = peer.guest->header(request.header.src_port, 5001, VIRTIO_VSOCK_OP_RST);
  ASSERT_TRUE(peer.guest->send(refusal));
  peer.kick(TX_QUEUE);
  EXPECT_EQ(read(client), "");
}

// §C 4: a client that closed killed the VMM by SIGPIPE.
TEST_F(ServedDeviceTest, SurvivesAClientThatClosedBeforeItsBytesCame) {
  for (int i = 0; i < 20; ++i) {
    std::uint32_t port = 0;
    Fd client = open(port);
    client.reset();
    send(port, VIRTIO_VSOCK_OP_RW, "nobody reads this");
    std::uint32_t flags = next(VIRTIO_VSOCK_OP_SHUTDOWN).header.flags;
    // Its end may be read before its hang-up is told.
    if (flags == VIRTIO_VSOCK_SHUTDOWN_SEND) flags = next(VIRTIO_VSOCK_OP_SHUTDOWN).header.flags;
    EXPECT_EQ(flags, SHUTDOWN_BOTH);
    send(port, VIRTIO_VSOCK_OP_RST);
  }
  expectAlive();
}

TEST_F(ServedDeviceTest, DeliversWhatAClientWroteBeforeItClosed) {
  std::uint32_t port = 0;
  Fd client = open(port);
  send(port, VIRTIO_VSOCK_OP_RW, "unread");  // so that the close is a reset
  pollfd wait{client.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&wait, 1, 20'000), 1);
  write(client, "last words");
  client.reset();
  EXPECT_EQ(next(VIRTIO_VSOCK_OP_RW).payload, "last words");
  EXPECT_EQ(next(VIRTIO_VSOCK_OP_SHUTDOWN).header.flags, SHUTDOWN_BOTH);
}

TEST_F(ServedDeviceTest, HalfClosesEachDirectionByItself) {
  std::uint32_t port = 0;
  const Fd client = open(port);
  ::shutdown(client.get(), SHUT_WR);
  EXPECT_EQ(next(VIRTIO_VSOCK_OP_SHUTDOWN).header.flags, std::uint32_t{VIRTIO_VSOCK_SHUTDOWN_SEND});
  send(port, VIRTIO_VSOCK_OP_RW, "after the client's end");
  EXPECT_EQ(read(client), "after the client's end");
  send(port, VIRTIO_VSOCK_OP_SHUTDOWN, {}, VIRTIO_VSOCK_SHUTDOWN_SEND);
  EXPECT_EQ(read(client), "");
}

TEST_F(ServedDeviceTest, ClosesClientsWhileTheGuestsDriverIsAwayAndServesTheNextDriver) {
  std::uint32_t port = 0;
  const Fd open1 = open(port);
  peer.stopRings();
  EXPECT_EQ(read(open1), "");
  const Fd early = dial();
  write(early, "CONNECT 5000\n");
  EXPECT_EQ(read(early), "");
  peer.guest->forget();
  peer.guest->offer();
  peer.startRings();
  peer.send(Request::GET_QUEUE_NUM);
  ASSERT_EQ(peer.replyNumber(), 2U);
  expectAlive();
}

TEST_F(ServedDeviceTest, AStopReportsWhereTheNextDriverGoesOn) {
  std::uint32_t port = 0;
  const Fd client = open(port);
  const auto bases = peer.stopRings();
  EXPECT_EQ(bases[RX_QUEUE], 1U);
  EXPECT_EQ(bases[TX_QUEUE], 1U);
}

TEST_F(ServedDeviceTest, ServesOnAfterABadQueueOnceTheDriverStartsOver) {
  std::uint32_t port = 0;
  const Fd client = open(port);
  peer.guest->publish(TX_QUEUE, 0xffff);
  peer.kick(TX_QUEUE);
  EXPECT_EQ(read(client), "");
  peer.stopRings();
  peer.guest->forget();
  peer.guest->offer();
  peer.startRings();
  peer.send(Request::GET_QUEUE_NUM);
  ASSERT_EQ(peer.replyNumber(), 2U);
  expectAlive();
}

TEST_F(ServedDeviceTest, EndsWithItsFrontEnd) {
  peer.socket.reset();
  thread.join();
  EXPECT_EQ(exitCode, 0);
}

TEST_F(ServedDeviceTest, FailsWhenItsFrontEndBreaksTheProtocol) {
  peer.send(Request::SET_VRING_NUM, VringState{7, 7});
  thread.join();
  EXPECT_EQ(exitCode, 1);
}

}  // namespace
}  // namespace cordon::vsock::testing
