#include "services/vsock/testing/device-test.h"

namespace cordon::vsock::testing {

void DeviceTest::startRings(std::uint16_t base) {
  for (std::size_t queue = 0; queue < QUEUE_COUNT; ++queue) {
    EXPECT_EQ(device.startQueue(queue, guest.rings(queue), SimulatedGuest::RING_SIZE, base),
              QueueFault::NONE);
  }
}

void DeviceTest::pump() {
  for (int i = 0; i < 10000; ++i) {
    if (!device.pump(now)) return;
  }
  FAIL() << "the device never came to rest";
}

bool DeviceTest::next(Packet& packet) {
  pump();
  return guest.take(packet);
}

Packet DeviceTest::expect(std::uint16_t op) {
  Packet packet;
  EXPECT_TRUE(next(packet)) << "no packet where one of op " << op << " was expected";
  EXPECT_EQ(packet.header.op, op);
  EXPECT_EQ(packet.header.src_cid, HOST_CID);
  EXPECT_EQ(packet.header.dst_cid, CID);
  return packet;
}

void DeviceTest::expectSilence() {
  Packet packet;
  EXPECT_FALSE(next(packet)) << "op " << packet.header.op;
}

void DeviceTest::send(const Opened& to, std::uint16_t op, std::string_view payload,
                      std::uint32_t flags) {
  PacketHeader header = guest.header(to.hostPort, PORT, op);
  header.flags = flags;
  header.len = static_cast<std::uint32_t>(payload.size());
  header.fwd_cnt = guestConsumed;
  ASSERT_TRUE(guest.send(header, payload));
  pump();
}

DeviceTest::Opened DeviceTest::dial() {
  Opened opened{std::make_shared<FakeClient>(), 0};
  const auto port = device.connect(std::make_unique<FakeStream>(opened.client), PORT, now);
  if (port) opened.hostPort = *port;
  return opened;
}

DeviceTest::Opened DeviceTest::open() {
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

void DeviceTest::clientEvent(const Opened& opened, bool hungUp) {
  device.hostEvent(opened.hostPort, true, true, hungUp, now);
}

}  // namespace cordon::vsock::testing
