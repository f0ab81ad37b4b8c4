// The fixture that has a device, a guest and clients without sockets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "services/vsock/device/device.h"
#include "services/vsock/testing/fake-stream.h"
#include "services/vsock/testing/simulated-guest.h"

namespace cordon::vsock::testing {

class DeviceTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t CID = 10000;
  static constexpr std::uint32_t PORT = 5000;

  struct Opened {
    std::shared_ptr<FakeClient> client;
    std::uint32_t hostPort = 0;
  };

  explicit DeviceTest(Limits limits = {}, std::size_t rxBuffer = SimulatedGuest::BUFFER)
      : storage(SimulatedGuest::MEMORY_SIZE + 4096),
        device(CID, limits),
        guest(align(storage), CID, rxBuffer) {
    const MemoryRegion region = guest.region();
    EXPECT_TRUE(device.memory().assign({&region, 1}));
    startRings();
  }

  void startRings(std::uint16_t base = 0) {
    for (std::size_t queue = 0; queue < QUEUE_COUNT; ++queue) {
      EXPECT_EQ(device.startQueue(queue, guest.rings(queue), SimulatedGuest::RING_SIZE, base),
                QueueFault::NONE);
    }
  }
  void pump() {
    for (int i = 0; i < 10000; ++i) {
      if (!device.pump(now)) return;
    }
    FAIL() << "the device never came to rest";
  }
  // The next packet after all work is done.
  bool next(Packet& packet) {
    pump();
    return guest.take(packet);
  }
  Packet expect(std::uint16_t op) {
    Packet packet;
    EXPECT_TRUE(next(packet)) << "no packet where one of op " << op << " was expected";
    EXPECT_EQ(packet.header.op, op);
    EXPECT_EQ(packet.header.src_cid, HOST_CID);
    EXPECT_EQ(packet.header.dst_cid, CID);
    return packet;
  }
  void expectSilence() {
    Packet packet;
    EXPECT_FALSE(next(packet)) << "op " << packet.header.op;
  }
  void send(const Opened& to, std::uint16_t op, std::string_view payload = {},
            std::uint32_t flags = 0) {
    PacketHeader header = guest.header(to.hostPort, PORT, op);
    header.flags = flags;
    header.len = static_cast<std::uint32_t>(payload.size());
    header.fwd_cnt = guestConsumed;
    ASSERT_TRUE(guest.send(header, payload));
    pump();
  }
  Opened dial() {
    Opened opened{std::make_shared<FakeClient>(), 0};
    const auto port = device.connect(std::make_unique<FakeStream>(opened.client), PORT, now);
    if (port) opened.hostPort = *port;
    return opened;
  }
  Opened open() {
    Opened opened = dial();
    const Packet request = expect(VIRTIO_VSOCK_OP_REQUEST);
    EXPECT_EQ(request.header.src_port, opened.hostPort);
    EXPECT_EQ(request.header.dst_port, PORT);
    guestConsumed = 0;
    send(opened, VIRTIO_VSOCK_OP_RESPONSE);
    EXPECT_EQ(opened.client->received, "OK " + std::to_string(opened.hostPort) + "\n");
    opened.client->received.clear();
    opened.client->receivedBytes = 0;
    return opened;
  }
  void clientEvent(const Opened& opened, bool hungUp = false) {
    device.hostEvent(opened.hostPort, true, true, hungUp, now);
  }

  std::vector<std::uint8_t> storage;
  Device device;
  SimulatedGuest guest;
  std::uint32_t guestConsumed = 0;
  TimePoint now{std::chrono::hours(1)};

 private:
  static std::uint8_t* align(std::vector<std::uint8_t>& bytes) {
    void* where = bytes.data();
    std::size_t space = bytes.size();
    return static_cast<std::uint8_t*>(std::align(4096, SimulatedGuest::MEMORY_SIZE, where, space));
  }
};

}  // namespace cordon::vsock::testing
