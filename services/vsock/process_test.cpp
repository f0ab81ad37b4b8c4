// The program as it is installed: its arguments, its sandbox, its end.
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "services/vsock/testing/vsock-process.h"

namespace cordon::vsock::testing {
namespace {

class VsockProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "SKIPPED(host-lacks:root): becomes another uid";
  }
  static std::string readSome(const Fd& client, std::size_t most = 100) {
    std::string bytes(most, '\0');
    const ssize_t got = ::recv(client.get(), bytes.data(), most, 0);
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
  }
  static void writeAll(const Fd& client, std::string_view bytes) {
    require(::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()),
            "write");
  }
  static Packet next(FrontEndPeer& peer) {
    Packet packet;
    std::uint64_t count;
    ::fcntl(peer.calls[RX_QUEUE].get(), F_SETFL, 0);
    while (!peer.guest->take(packet)) {
      require(::read(peer.calls[RX_QUEUE].get(), &count, sizeof(count)) == sizeof(count),
              "interrupt");
    }
    return packet;
  }
};

// Everything that the policy allows a serving device, once: messages with descriptors, memory,
// kicks, interrupts, a client whose bytes wait, each half close, a driver that starts over, an
// orderly end.
TEST_F(VsockProcessTest, ServesUnderItsPolicy) {
  FrontEndPeer peer;
  VsockProcess process(CORDON_VSOCK_BINARY, peer);
  for (int driver = 0; driver < 2; ++driver) {
    peer.guest->forget();
    peer.guest->offer();
    if (driver == 0) {
      peer.start();
    } else {
      peer.sendMemory();
      peer.startRings();
    }
    peer.send(Request::GET_QUEUE_NUM);
    ASSERT_EQ(peer.replyNumber(), 2U);

    const Fd client = process.dial();
    writeAll(client, "CONNECT 5000\nbehind");
    const std::uint32_t port = next(peer).header.src_port;
    peer.guest->send(peer.guest->header(port, 5000, VIRTIO_VSOCK_OP_RESPONSE));
    peer.kick(TX_QUEUE);
    EXPECT_EQ(readSome(client), "OK " + std::to_string(port) + "\n");
    EXPECT_EQ(next(peer).payload, "behind");

    // More than a socket takes, so that the device has to keep it.
    const std::string bytes(MAX_PAYLOAD, 'x');
    PacketHeader header = peer.guest->header(port, 5000, VIRTIO_VSOCK_OP_RW);
    header.len = MAX_PAYLOAD;
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(peer.guest->send(header, bytes));
    peer.kick(TX_QUEUE);
    header.op = VIRTIO_VSOCK_OP_SHUTDOWN;
    header.len = 0;
    header.flags = VIRTIO_VSOCK_SHUTDOWN_SEND;
    peer.guest->send(header);
    peer.kick(TX_QUEUE);
    std::size_t received = 0;
    for (std::string some; !(some = readSome(client, 4096)).empty();) received += some.size();
    EXPECT_EQ(received, 4U * MAX_PAYLOAD);
    ::shutdown(client.get(), SHUT_WR);
    Packet packet = next(peer);
    while (packet.header.op == VIRTIO_VSOCK_OP_CREDIT_UPDATE) packet = next(peer);
    EXPECT_EQ(packet.header.op, VIRTIO_VSOCK_OP_SHUTDOWN);
    peer.stopRings();
  }
  peer.socket.reset();
  const int status = process.wait();
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(VsockProcessTest, EndsAtASigtermInOrder) {
  FrontEndPeer peer;
  VsockProcess process(CORDON_VSOCK_BINARY, peer);
  peer.send(Request::GET_QUEUE_NUM);
  ASSERT_EQ(peer.replyNumber(), 2U);  // it serves
  ::kill(process.id(), SIGTERM);
  const int status = process.wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(VsockProcessTest, RefusesMemoryThatCanStillShrink) {
  FrontEndPeer peer;
  peer.memory = makeMemory(SimulatedGuest::MEMORY_SIZE, 0);
  VsockProcess process(CORDON_VSOCK_BINARY, peer);
  peer.negotiate();
  peer.sendMemory();
  const int status = process.wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
}

TEST_F(VsockProcessTest, RefusesToServeWithPrivileges) {
  FrontEndPeer peer;
  const std::string command = std::string(CORDON_VSOCK_BINARY) + " --vhost-user-fd " +
                              std::to_string(peer.backEnd.get()) + " --listen-fd ";
  Fd listener(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "cordon-vsock-root-" + std::to_string(::getpid());
  name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
            0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ::fcntl(peer.backEnd.get(), F_SETFD, 0);
  const int status =
      std::system((command + std::to_string(listener.get()) + " --cid 10000 2>/dev/null").c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << status;
}

TEST_F(VsockProcessTest, RefusesArgumentsAndDescriptorsThatAreNotItsOwn) {
  for (const char* arguments :
       {"", "--cid 10000", "--vhost-user-fd 3 --listen-fd 4 --cid 2",
        "--vhost-user-fd 3 --listen-fd 4 --cid 65536",
        "--vhost-user-fd 3 --listen-fd 3 --cid 10000",
        "--vhost-user-fd 0 --listen-fd 4 --cid 10000",
        "--vhost-user-fd x --listen-fd 4 --cid 10000",
        "--vhost-user-fd 3 --listen-fd 4 --cid 10000 --extra",
        "--vhost-user-fd 3 --vhost-user-fd 4 --cid 10000",
        "--vhost-user-fd 77 --listen-fd 78 --cid 10000",
        "--vhost-user-fd 3 --listen-fd 4 --cid 10000 3</dev/null 4</dev/null"}) {
    const int status =
        std::system((std::string(CORDON_VSOCK_BINARY) + " " + arguments + " 2>/dev/null").c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << arguments << ": " << status;
  }
}

}  // namespace
}  // namespace cordon::vsock::testing
