// Honest guests and hosts: what each side sees of the other.
#include "services/vsock/device/device.h"

#include <string>

#include <gtest/gtest.h>

#include "services/vsock/testing/device-test.h"

namespace cordon::vsock::testing {
namespace {

using namespace std::chrono_literals;

class DeviceStreamTest : public DeviceTest {
 protected:
  DeviceStreamTest() { guest.offer(); }
};

TEST_F(DeviceStreamTest, AnswersOkOnlyWhenTheGuestAccepts) {
  const Opened opened = dial();
  expect(VIRTIO_VSOCK_OP_REQUEST);
  EXPECT_EQ(opened.client->received, "");
  send(opened, VIRTIO_VSOCK_OP_RESPONSE);
  EXPECT_EQ(opened.client->received, "OK " + std::to_string(opened.hostPort) + "\n");
  EXPECT_EQ(device.counters.opened, 1U);
}

TEST_F(DeviceStreamTest, ClosesWithoutOkWhenTheGuestRefuses) {
  const Opened opened = dial();
  expect(VIRTIO_VSOCK_OP_REQUEST);
  send(opened, VIRTIO_VSOCK_OP_RST);
  EXPECT_TRUE(opened.client->closed);
  EXPECT_EQ(opened.client->received, "");
  EXPECT_EQ(device.counters.guestRefused, 1U);
  EXPECT_EQ(device.connectionCount(), 0U);
  expectSilence();
}

TEST_F(DeviceStreamTest, PassesBytesBothWays) {
  const Opened opened = open();
  opened.client->sends = "from the host";
  clientEvent(opened);
  EXPECT_EQ(expect(VIRTIO_VSOCK_OP_RW).payload, "from the host");
  send(opened, VIRTIO_VSOCK_OP_RW, "from the guest");
  EXPECT_EQ(opened.client->received, "from the guest");
  EXPECT_EQ(device.counters.toGuestBytes, 13U);
  EXPECT_EQ(device.counters.toHostBytes, 14U);
}

TEST_F(DeviceStreamTest, DeliversWhatStoodBehindTheConnectLineAfterTheOk) {
  const Opened opened = dial();
  opened.client->sends = "early";
  expect(VIRTIO_VSOCK_OP_REQUEST);
  expectSilence();
  send(opened, VIRTIO_VSOCK_OP_RESPONSE);
  EXPECT_EQ(expect(VIRTIO_VSOCK_OP_RW).payload, "early");
}

TEST_F(DeviceStreamTest, NumbersHostPortsUniquely) {
  const Opened one = dial();
  const Opened other = dial();
  EXPECT_NE(one.hostPort, other.hostPort);
  EXPECT_GE(one.hostPort, 1U << 30);
}

TEST_F(DeviceStreamTest, HalfClosesTowardsTheGuestAloneAndStillDeliversItsBytes) {
  const Opened opened = open();
  opened.client->sends = "last";
  opened.client->ended = true;
  clientEvent(opened);
  EXPECT_EQ(expect(VIRTIO_VSOCK_OP_RW).payload, "last");
  EXPECT_EQ(expect(VIRTIO_VSOCK_OP_SHUTDOWN).header.flags,
            std::uint32_t{VIRTIO_VSOCK_SHUTDOWN_SEND});
  for (int i = 0; i < 3; ++i) {
    send(opened, VIRTIO_VSOCK_OP_RW, "reply ");
    clientEvent(opened);
  }
  EXPECT_EQ(opened.client->received, "reply reply reply ");
  EXPECT_FALSE(opened.client->writeEnded);
  EXPECT_FALSE(opened.client->closed);
}

// §C 7 of the notes on other devices: half-closed sockets that stopped sending credit updates.
TEST_F(DeviceStreamTest, StillGrantsCreditAfterTheClientHalfClosed) {
  const Opened opened = open();
  opened.client->ended = true;
  opened.client->keeps = false;
  clientEvent(opened);
  expect(VIRTIO_VSOCK_OP_SHUTDOWN);
  const std::string bytes(MAX_PAYLOAD, 'x');
  std::uint32_t lastTold = 0;
  for (int i = 0; i < 64; ++i) {
    send(opened, VIRTIO_VSOCK_OP_RW, bytes);
    Packet packet;
    while (guest.take(packet)) {
      ASSERT_EQ(packet.header.op, VIRTIO_VSOCK_OP_CREDIT_UPDATE);
      lastTold = packet.header.fwd_cnt;
    }
    ASSERT_LE(static_cast<std::uint32_t>(i + 1) * MAX_PAYLOAD - lastTold,
              device.limits().largeBuffer / 2);
  }
  EXPECT_EQ(opened.client->receivedBytes, 64U * MAX_PAYLOAD);
}

TEST_F(DeviceStreamTest, HalfClosesTowardsTheHostAloneAndStillDeliversItsBytes) {
  const Opened opened = open();
  opened.client->room = 2;
  send(opened, VIRTIO_VSOCK_OP_RW, "tail");
  send(opened, VIRTIO_VSOCK_OP_SHUTDOWN, {}, VIRTIO_VSOCK_SHUTDOWN_SEND);
  EXPECT_FALSE(opened.client->writeEnded) << "the end of file would overtake the bytes";
  opened.client->room = SIZE_MAX;
  clientEvent(opened);
  EXPECT_EQ(opened.client->received, "tail");
  EXPECT_TRUE(opened.client->writeEnded);
  EXPECT_FALSE(opened.client->readEnded);
  opened.client->sends = "still heard";
  clientEvent(opened);
  EXPECT_EQ(expect(VIRTIO_VSOCK_OP_RW).payload, "still heard");
}

TEST_F(DeviceStreamTest, StopsReadingAClientThatTheGuestDoesNotListenTo) {
  const Opened opened = open();
  send(opened, VIRTIO_VSOCK_OP_SHUTDOWN, {}, VIRTIO_VSOCK_SHUTDOWN_RCV);
  EXPECT_TRUE(opened.client->readEnded);
  opened.client->sends = "unheard";
  clientEvent(opened);
  expectSilence();
  send(opened, VIRTIO_VSOCK_OP_RW, "reply");
  EXPECT_EQ(opened.client->received, "reply");
}

TEST_F(DeviceStreamTest, AnswersAFullShutdownWithAResetAndClosesTheClientAfterItsBytes) {
  const Opened opened = open();
  opened.client->room = 0;
  send(opened, VIRTIO_VSOCK_OP_RW, "slowly read");
  send(opened, VIRTIO_VSOCK_OP_SHUTDOWN, {}, SHUTDOWN_BOTH);
  expect(VIRTIO_VSOCK_OP_RST);
  EXPECT_FALSE(opened.client->closed);
  EXPECT_EQ(device.connectionCount(), 1U);
  opened.client->room = SIZE_MAX;
  clientEvent(opened);
  EXPECT_EQ(opened.client->received, "slowly read");
  EXPECT_TRUE(opened.client->closed);
  EXPECT_EQ(device.connectionCount(), 0U);
}

TEST_F(DeviceStreamTest, TellsTheGuestOfAClientThatClosedAfterDeliveringItsBytes) {
  const Opened opened = open();
  opened.client->sends = "bye";
  opened.client->ended = true;
  clientEvent(opened, true);
  EXPECT_EQ(expect(VIRTIO_VSOCK_OP_RW).payload, "bye");
  EXPECT_EQ(expect(VIRTIO_VSOCK_OP_SHUTDOWN).header.flags, SHUTDOWN_BOTH);
  EXPECT_TRUE(opened.client->closed);
  send(opened, VIRTIO_VSOCK_OP_RST);
  EXPECT_EQ(device.connectionCount(), 0U);
}

// §C 3: a client that resets is drained first; its error is then a close like any other.
TEST_F(DeviceStreamTest, DrainsAClientBeforeItsErrorCloses) {
  const Opened opened = open();
  opened.client->sends = "before the error";
  opened.client->gone = true;
  clientEvent(opened, true);
  EXPECT_EQ(expect(VIRTIO_VSOCK_OP_RW).payload, "before the error");
  EXPECT_EQ(expect(VIRTIO_VSOCK_OP_SHUTDOWN).header.flags, SHUTDOWN_BOTH);
}

TEST_F(DeviceStreamTest, ResetsAGuestThatDoesNotAnswerAShutdown) {
  const Opened opened = open();
  opened.client->ended = true;
  clientEvent(opened, true);
  expect(VIRTIO_VSOCK_OP_SHUTDOWN);
  now += device.limits().closing;
  device.tick(now);
  expect(VIRTIO_VSOCK_OP_RST);
  EXPECT_EQ(device.connectionCount(), 0U);
  EXPECT_EQ(device.counters.timedOut, 1U);
}

TEST_F(DeviceStreamTest, ForgetsAClientThatLeavesBeforeTheRequestWasSent) {
  Limits none;
  Device fresh(CID, none);
  const MemoryRegion region = guest.region();
  ASSERT_TRUE(fresh.memory().assign({&region, 1}));
  guest.forget();  // no rx buffers at all
  for (std::size_t queue = 0; queue < QUEUE_COUNT; ++queue) {
    ASSERT_EQ(fresh.startQueue(queue, guest.rings(queue), SimulatedGuest::RING_SIZE, 0),
              QueueFault::NONE);
  }
  for (int i = 0; i < 5'000; ++i) {
    const auto client = std::make_shared<FakeClient>();
    const auto port = fresh.connect(std::make_unique<FakeStream>(client), PORT, now);
    ASSERT_TRUE(port);
    fresh.hostEvent(*port, true, false, true, now);
    ASSERT_TRUE(client->closed);
  }
  EXPECT_EQ(fresh.connectionCount(), 0U);
}

TEST_F(DeviceStreamTest, ResetsAGuestThatAcceptsForAClientThatLeft) {
  const Opened opened = dial();
  expect(VIRTIO_VSOCK_OP_REQUEST);
  clientEvent(opened, true);
  EXPECT_TRUE(opened.client->closed);
  send(opened, VIRTIO_VSOCK_OP_RESPONSE);
  expect(VIRTIO_VSOCK_OP_RST);
  EXPECT_EQ(device.connectionCount(), 0U);
}

TEST_F(DeviceStreamTest, ClosesAClientWhoseRequestIsNeverAnswered) {
  const Opened opened = dial();
  expect(VIRTIO_VSOCK_OP_REQUEST);
  now += device.limits().request - 1ms;
  device.tick(now);
  EXPECT_FALSE(opened.client->closed);
  now += 1ms;
  device.tick(now);
  EXPECT_TRUE(opened.client->closed);
  expect(VIRTIO_VSOCK_OP_RST);
}

TEST_F(DeviceStreamTest, EndsAllConnectionsWithTheDriverAndServesTheNextOne) {
  const Opened opened = open();
  opened.client->room = 0;
  send(opened, VIRTIO_VSOCK_OP_RW, "lost with the driver");
  EXPECT_EQ(device.stopQueue(RX_QUEUE), 1U);
  device.stopQueue(TX_QUEUE);
  EXPECT_TRUE(opened.client->closed);
  EXPECT_EQ(device.connectionCount(), 0U);
  EXPECT_EQ(device.bufferedBytes(), 0U);

  const Opened between = dial();
  EXPECT_TRUE(between.client->closed);
  EXPECT_EQ(device.counters.notReady, 1U);

  guest.forget();
  guest.offer();
  startRings();
  const Opened later = open();
  send(later, VIRTIO_VSOCK_OP_RW, "again");
  EXPECT_EQ(later.client->received, "again");
  EXPECT_EQ(device.counters.ringStarts, 4U);
}

TEST_F(DeviceStreamTest, SignalsTheDriverForWhatItCompletedAndOnlyIfItWants) {
  dial();
  pump();
  EXPECT_TRUE(device.takeInterrupt(RX_QUEUE));
  EXPECT_FALSE(device.takeInterrupt(RX_QUEUE));
  EXPECT_FALSE(device.takeInterrupt(TX_QUEUE));
  guest.flags(RX_QUEUE, SimulatedGuest::AVAILABLE_OFFSET).store(AVAILABLE_NO_INTERRUPT);
  dial();
  pump();
  EXPECT_FALSE(device.takeInterrupt(RX_QUEUE));
}

TEST_F(DeviceStreamTest, AsksForKicksWhenItStopsLooking) {
  pump();
  EXPECT_EQ(guest.flags(TX_QUEUE, SimulatedGuest::USED_OFFSET).load(), 0);
}

class DeviceNoBufferTest : public DeviceTest {};

TEST_F(DeviceNoBufferTest, WantsAKickWhenPacketsWaitForBuffersAndSendsThemThen) {
  dial();
  pump();
  EXPECT_EQ(guest.flags(RX_QUEUE, SimulatedGuest::USED_OFFSET).load(), 0);
  guest.offer(1);
  expect(VIRTIO_VSOCK_OP_REQUEST);
}

// A packet spread over the smallest of pieces, as no driver lays it out and any may.
TEST_F(DeviceNoBufferTest, ReadsAndWritesPacketsThatAreCutAnywhere) {
  const auto chain = [this](std::size_t queue, std::uint16_t flags, std::uint8_t* buffer,
                            std::size_t bytes) {
    std::uint16_t at = 0;
    for (std::size_t done = 0; done < bytes; ++at) {
      const std::size_t take = std::min<std::size_t>(at % 3, bytes - done);  // some are empty
      const bool last = done + take == bytes;
      guest.describe(queue, at,
                     {guest.guestAddress(buffer) + done, static_cast<std::uint32_t>(take),
                      static_cast<std::uint16_t>(flags | (last ? 0 : DESCRIPTOR_NEXT)),
                      static_cast<std::uint16_t>(at + 1)});
      done += take;
    }
    guest.publish(queue, 0);
  };
  chain(RX_QUEUE, DESCRIPTOR_WRITE, guest.rxBuffer(0), 50);
  const Opened opened = dial();
  expect(VIRTIO_VSOCK_OP_REQUEST);
  PacketHeader response = guest.header(opened.hostPort, PORT, VIRTIO_VSOCK_OP_RESPONSE);
  std::memcpy(guest.txBuffer(0), &response, HEADER_SIZE);
  chain(TX_QUEUE, 0, guest.txBuffer(0), HEADER_SIZE);
  pump();
  EXPECT_EQ(device.counters.opened, 1U);
  response.op = VIRTIO_VSOCK_OP_RW;
  response.len = 5;
  std::memcpy(guest.txBuffer(0), &response, HEADER_SIZE);
  std::memcpy(guest.txBuffer(0) + HEADER_SIZE, "bytes", 5);
  opened.client->received.clear();
  chain(TX_QUEUE, 0, guest.txBuffer(0), HEADER_SIZE + 5);
  pump();
  EXPECT_EQ(opened.client->received, "bytes");
}

}  // namespace
}  // namespace cordon::vsock::testing
