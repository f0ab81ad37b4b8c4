// Guests that lie: each with its exact verdict and counter.
#include <array>
#include <initializer_list>
#include <string>

#include <gtest/gtest.h>

#include "services/vsock/device/device.h"
#include "services/vsock/testing/device-test.h"

namespace cordon::vsock::testing {
namespace {

using namespace std::chrono_literals;

class HostileGuestTest : public DeviceTest {
 protected:
  HostileGuestTest() { guest.offer(); }

  // What must follow any fault that is one connection's: it is reset and closed, and the others
  // live.
  void expectReset(const Opened& opened) {
    const Packet packet = expect(VIRTIO_VSOCK_OP_RST);
    EXPECT_EQ(packet.header.src_port, opened.hostPort);
    EXPECT_TRUE(opened.client->closed);
    EXPECT_EQ(opened.client->received, "");
    expectSilence();
    expectAlive();
  }
  void expectAlive() {
    const Opened other = open();
    send(other, VIRTIO_VSOCK_OP_RW, "alive");
    EXPECT_EQ(other.client->received, "alive");
  }
  void sendHeader(const PacketHeader& header, std::string_view payload = {}) {
    ASSERT_TRUE(guest.send(header, payload));
    pump();
  }
};

TEST_F(HostileGuestTest, DialsAreResetAndCounted) {
  for (std::uint32_t port : {1U, 5000U, 1U << 30}) {
    sendHeader(guest.header(port, 77, VIRTIO_VSOCK_OP_REQUEST));
    const Packet reset = expect(VIRTIO_VSOCK_OP_RST);
    EXPECT_EQ(reset.header.src_port, port);
    EXPECT_EQ(reset.header.dst_port, 77U);
  }
  EXPECT_EQ(device.counters.guestDials, 3U);
  EXPECT_EQ(device.counters.unknownConnection, 0U);
  expectAlive();
}

TEST_F(HostileGuestTest, ARequestWithinAConnectionResetsIt) {
  const Opened opened = open();
  send(opened, VIRTIO_VSOCK_OP_REQUEST);
  EXPECT_EQ(device.counters.violations, 1U);
  EXPECT_EQ(device.counters.guestDials, 1U);
  expectReset(opened);
}

TEST_F(HostileGuestTest, PacketsOfNoConnectionAreReset) {
  for (const int op : std::initializer_list<int>{VIRTIO_VSOCK_OP_INVALID, VIRTIO_VSOCK_OP_RESPONSE,
                                                 VIRTIO_VSOCK_OP_SHUTDOWN, VIRTIO_VSOCK_OP_RW,
                                                 VIRTIO_VSOCK_OP_CREDIT_UPDATE,
                                                 VIRTIO_VSOCK_OP_CREDIT_REQUEST, 8, 0xffff}) {
    sendHeader(guest.header(1234, 5678, static_cast<std::uint16_t>(op)));
    expect(VIRTIO_VSOCK_OP_RST);
  }
  EXPECT_EQ(device.counters.unknownConnection, 8U);
}

TEST_F(HostileGuestTest, AResetOfNoConnectionIsNotAnswered) {
  sendHeader(guest.header(1234, 5678, VIRTIO_VSOCK_OP_RST));
  expectSilence();
}

TEST_F(HostileGuestTest, TheRightHostPortWithAnotherGuestPortIsNoConnection) {
  const Opened opened = open();
  PacketHeader header = guest.header(opened.hostPort, PORT + 1, VIRTIO_VSOCK_OP_RW);
  header.len = 4;
  sendHeader(header, "evil");
  EXPECT_EQ(expect(VIRTIO_VSOCK_OP_RST).header.dst_port, PORT + 1);
  EXPECT_FALSE(opened.client->closed);
  EXPECT_EQ(opened.client->received, "");
}

TEST_F(HostileGuestTest, ForeignAddressesAreDroppedAndCounted) {
  const Opened opened = open();
  for (const std::uint64_t source :
       std::initializer_list<std::uint64_t>{0, 2, CID + 1, CID | (1ULL << 32)}) {
    PacketHeader header = guest.header(opened.hostPort, PORT, VIRTIO_VSOCK_OP_RST);
    header.src_cid = source;
    sendHeader(header);
  }
  for (const std::uint64_t destination :
       std::initializer_list<std::uint64_t>{0, 1, CID, HOST_CID | (1ULL << 32)}) {
    PacketHeader header = guest.header(opened.hostPort, PORT, VIRTIO_VSOCK_OP_RST);
    header.dst_cid = destination;
    sendHeader(header);
  }
  EXPECT_EQ(device.counters.wrongAddress, 8U);
  EXPECT_FALSE(opened.client->closed);
  expectSilence();
}

TEST_F(HostileGuestTest, OtherSocketTypesAreReset) {
  const Opened opened = open();
  for (const int type : {0, int{VIRTIO_VSOCK_TYPE_SEQPACKET}, 3, 0xffff}) {
    PacketHeader header = guest.header(opened.hostPort, PORT, VIRTIO_VSOCK_OP_REQUEST);
    header.type = static_cast<std::uint16_t>(type);
    sendHeader(header);
    EXPECT_EQ(expect(VIRTIO_VSOCK_OP_RST).header.type, type);
  }
  EXPECT_EQ(device.counters.wrongType, 4U);
  EXPECT_FALSE(opened.client->closed);
}

TEST_F(HostileGuestTest, OperationsThatDoNotExistResetTheConnection) {
  for (const int op : std::initializer_list<int>{VIRTIO_VSOCK_OP_INVALID, 8, 0xffff}) {
    const Opened opened = open();
    send(opened, static_cast<std::uint16_t>(op));
    expectReset(opened);
  }
  EXPECT_EQ(device.counters.violations, 3U);
}

TEST_F(HostileGuestTest, AnythingButAnAnswerBeforeTheAnswerResetsTheConnection) {
  for (const int op :
       std::initializer_list<int>{VIRTIO_VSOCK_OP_RW, VIRTIO_VSOCK_OP_SHUTDOWN,
                                  VIRTIO_VSOCK_OP_CREDIT_UPDATE, VIRTIO_VSOCK_OP_CREDIT_REQUEST}) {
    const Opened opened = dial();
    expect(VIRTIO_VSOCK_OP_REQUEST);
    send(opened, static_cast<std::uint16_t>(op));
    expectReset(opened);
  }
  EXPECT_EQ(device.counters.violations, 4U);
  EXPECT_EQ(device.counters.opened, 4U);  // those of expectAlive()
}

TEST_F(HostileGuestTest, AnAnswerBeforeTheRequestWasSentOpensNothing) {
  guest.forget();
  startRings();
  const Opened opened = dial();
  send(opened, VIRTIO_VSOCK_OP_RESPONSE);
  EXPECT_TRUE(opened.client->closed);
  EXPECT_EQ(opened.client->received, "");
  EXPECT_EQ(device.counters.violations, 1U);
  EXPECT_EQ(device.connectionCount(), 0U);
}

TEST_F(HostileGuestTest, ASecondAnswerResetsTheConnection) {
  const Opened opened = open();
  send(opened, VIRTIO_VSOCK_OP_RESPONSE);
  EXPECT_EQ(device.counters.violations, 1U);
  expectReset(opened);
}

TEST_F(HostileGuestTest, BytesAfterItsOwnEndOfFileResetTheConnection) {
  const Opened opened = open();
  send(opened, VIRTIO_VSOCK_OP_SHUTDOWN, {}, VIRTIO_VSOCK_SHUTDOWN_SEND);
  send(opened, VIRTIO_VSOCK_OP_RW, "more");
  EXPECT_EQ(device.counters.violations, 1U);
  expectReset(opened);
}

TEST_F(HostileGuestTest, ALengthBeyondTheChainResetsTheConnection) {
  for (const std::uint32_t length : {5U, MAX_PAYLOAD, MAX_PAYLOAD + 1, UINT32_MAX}) {
    const Opened opened = open();
    PacketHeader header = guest.header(opened.hostPort, PORT, VIRTIO_VSOCK_OP_RW);
    header.len = length;
    sendHeader(header, "four");
    expectReset(opened);
  }
  EXPECT_EQ(device.counters.malformed, 4U);
}

TEST_F(HostileGuestTest, BytesInAPacketThatHasNoneResetTheConnection) {
  const Opened opened = open();
  send(opened, VIRTIO_VSOCK_OP_CREDIT_UPDATE, "bytes");
  EXPECT_EQ(device.counters.malformed, 1U);
  expectReset(opened);
}

TEST_F(HostileGuestTest, MoreThanItsCreditResetsTheConnectionAndBuffersNoMore) {
  const Opened opened = open();
  opened.client->room = 0;
  const std::string bytes(MAX_PAYLOAD, 'x');
  for (int i = 0; i < 4; ++i) send(opened, VIRTIO_VSOCK_OP_RW, bytes);
  EXPECT_EQ(device.bufferedBytes(), device.limits().largeBuffer);
  EXPECT_EQ(device.counters.creditLies, 0U);
  send(opened, VIRTIO_VSOCK_OP_RW, "x");
  EXPECT_EQ(device.counters.creditLies, 1U);
  EXPECT_EQ(device.bufferedBytes(), 0U);
  EXPECT_TRUE(opened.client->closed);
}

TEST_F(HostileGuestTest, MoreConsumedThanWasSentResetsTheConnection) {
  const Opened opened = open();
  opened.client->sends = "four";
  clientEvent(opened);
  expect(VIRTIO_VSOCK_OP_RW);
  guestConsumed = 5;
  send(opened, VIRTIO_VSOCK_OP_CREDIT_UPDATE);
  EXPECT_EQ(device.counters.creditLies, 1U);
  guestConsumed = 0;
  expectReset(opened);
}

TEST_F(HostileGuestTest, AnOldCountOfItsIsIgnored) {
  const Opened opened = open();
  opened.client->sends = std::string(10, 'x');
  clientEvent(opened);
  expect(VIRTIO_VSOCK_OP_RW);
  guestConsumed = 10;
  send(opened, VIRTIO_VSOCK_OP_CREDIT_UPDATE);
  guestConsumed = 4;  // two of its threads swapped their packets
  send(opened, VIRTIO_VSOCK_OP_CREDIT_UPDATE);
  expectSilence();
  EXPECT_EQ(device.counters.creditLies, 0U);
}

// §C 6: a credit request that was never answered was a deadlock.
TEST_F(HostileGuestTest, CreditRequestsAreAnsweredAtOnce) {
  const Opened opened = open();
  send(opened, VIRTIO_VSOCK_OP_CREDIT_REQUEST);
  const Packet update = expect(VIRTIO_VSOCK_OP_CREDIT_UPDATE);
  EXPECT_EQ(update.header.buf_alloc, device.limits().largeBuffer);
}

TEST_F(HostileGuestTest, AGuestThatGrantsNothingIsAskedOnceASecondAndNoMore) {
  const Opened opened = dial();
  expect(VIRTIO_VSOCK_OP_REQUEST);
  PacketHeader header = guest.header(opened.hostPort, PORT, VIRTIO_VSOCK_OP_RESPONSE);
  header.buf_alloc = 0;
  opened.client->sends = "waits";
  sendHeader(header);
  expect(VIRTIO_VSOCK_OP_CREDIT_REQUEST);
  expectSilence();
  for (int second = 0; second < 3; ++second) {
    now += 999ms;
    device.tick(now);
    expectSilence();
    now += 1ms;
    device.tick(now);
    expect(VIRTIO_VSOCK_OP_CREDIT_REQUEST);
    expectSilence();
  }
  EXPECT_EQ(opened.client->sends, "waits") << "read without a place to put it";
  send(opened, VIRTIO_VSOCK_OP_CREDIT_UPDATE);
  EXPECT_EQ(expect(VIRTIO_VSOCK_OP_RW).payload, "waits");
}

TEST_F(HostileGuestTest, AGuestThatShrinksItsBufferGetsNothingUntilItHasRoom) {
  const Opened opened = open();
  opened.client->sends = std::string(1000, 'x');
  clientEvent(opened);
  expect(VIRTIO_VSOCK_OP_RW);
  PacketHeader header = guest.header(opened.hostPort, PORT, VIRTIO_VSOCK_OP_CREDIT_UPDATE);
  header.buf_alloc = 10;
  sendHeader(header);
  opened.client->sends = std::string(50, 'y');
  clientEvent(opened);
  expect(VIRTIO_VSOCK_OP_CREDIT_REQUEST);
  header.fwd_cnt = 1000;
  sendHeader(header);
  EXPECT_EQ(expect(VIRTIO_VSOCK_OP_RW).payload.size(), 10U);
}

TEST_F(HostileGuestTest, StraysThatFindNoRoomAreDroppedAndCounted) {
  guest.forget();
  startRings();
  for (std::size_t i = 0; i < device.limits().strayResets + 10; ++i) {
    sendHeader(guest.header(1, 1, VIRTIO_VSOCK_OP_REQUEST));
  }
  EXPECT_EQ(device.counters.resetsDropped, 10U);
  EXPECT_EQ(device.counters.guestDials, device.limits().strayResets + 10);
}

TEST_F(HostileGuestTest, AGuestThatGivesNoBufferForItsResetIsForgotten) {
  const Opened opened = open();
  Packet packet;
  // Every buffer is used up and none is given back.
  opened.client->sendsMore = std::uint64_t{SimulatedGuest::RING_SIZE} * MAX_PAYLOAD;
  PacketHeader update = guest.header(opened.hostPort, PORT, VIRTIO_VSOCK_OP_CREDIT_UPDATE);
  update.buf_alloc = UINT32_MAX;
  sendHeader(update);
  clientEvent(opened);
  pump();
  while (guest.take(packet, true)) pump();
  send(opened, VIRTIO_VSOCK_OP_REQUEST);
  EXPECT_TRUE(opened.client->closed);
  EXPECT_EQ(device.connectionCount(), 1U);
  now += device.limits().closing;
  device.tick(now);
  EXPECT_EQ(device.connectionCount(), 0U);
  EXPECT_EQ(device.counters.timedOut, 1U);
}

// ---- Broken queues

struct BadChain {
  const char* name;
  std::size_t queue;
  std::array<RingDescriptor, 3> descriptors;
  std::uint16_t head;
  QueueFault expected;
};

constexpr std::uint64_t BASE = SimulatedGuest::GUEST_BASE;
constexpr std::uint64_t END = BASE + SimulatedGuest::MEMORY_SIZE;
constexpr std::uint16_t NEXT = DESCRIPTOR_NEXT;
constexpr std::uint16_t WRITE = DESCRIPTOR_WRITE;

const BadChain BAD_CHAINS[] = {
    {"LoopOfOne", TX_QUEUE, {{{BASE, 1, NEXT, 0}}}, 0, QueueFault::CHAIN_LENGTH},
    {"LoopOfTwo",
     TX_QUEUE,
     {{{BASE, 1, NEXT, 1}, {BASE, 1, NEXT, 0}}},
     0,
     QueueFault::CHAIN_LENGTH},
    {"LoopOfEmptyPieces",
     TX_QUEUE,
     {{{BASE, 0, NEXT, 1}, {BASE, 0, NEXT, 0}}},
     0,
     QueueFault::CHAIN_LENGTH},
    {"LoopInRx", RX_QUEUE, {{{BASE, 1, NEXT | WRITE, 0}}}, 0, QueueFault::CHAIN_LENGTH},
    {"HeadOutOfTable", TX_QUEUE, {}, SimulatedGuest::RING_SIZE, QueueFault::HEAD_INDEX},
    {"HeadFarOut", TX_QUEUE, {}, 0xffff, QueueFault::HEAD_INDEX},
    {"NextOutOfTable",
     TX_QUEUE,
     {{{BASE, 1, NEXT, SimulatedGuest::RING_SIZE}}},
     0,
     QueueFault::NEXT_INDEX},
    {"NextFarOut", TX_QUEUE, {{{BASE, 1, NEXT, 0xffff}}}, 0, QueueFault::NEXT_INDEX},
    {"BelowMemory", TX_QUEUE, {{{BASE - 1, 44, 0, 0}}}, 0, QueueFault::BUFFER_ADDRESS},
    {"AboveMemory", TX_QUEUE, {{{END, 44, 0, 0}}}, 0, QueueFault::BUFFER_ADDRESS},
    {"AcrossTheEnd", TX_QUEUE, {{{END - 43, 44, 0, 0}}}, 0, QueueFault::BUFFER_ADDRESS},
    {"WrapsAround", TX_QUEUE, {{{UINT64_MAX - 10, 44, 0, 0}}}, 0, QueueFault::BUFFER_ADDRESS},
    {"Huge", TX_QUEUE, {{{BASE, UINT32_MAX, 0, 0}}}, 0, QueueFault::BUFFER_ADDRESS},
    {"HostAddress",
     TX_QUEUE,
     {{{SimulatedGuest::FRONT_END_BASE, 44, 0, 0}}},
     0,
     QueueFault::BUFFER_ADDRESS},
    {"WritableInTx", TX_QUEUE, {{{BASE, 44, WRITE, 0}}}, 0, QueueFault::DIRECTION},
    {"WritableSecondInTx",
     TX_QUEUE,
     {{{BASE, 44, NEXT, 1}, {BASE, 1, WRITE, 0}}},
     0,
     QueueFault::DIRECTION},
    {"ReadableInRx", RX_QUEUE, {{{BASE, 100, 0, 0}}}, 0, QueueFault::DIRECTION},
    {"IndirectInTx", TX_QUEUE, {{{BASE, 44, DESCRIPTOR_INDIRECT, 0}}}, 0, QueueFault::INDIRECT},
    {"IndirectInRx",
     RX_QUEUE,
     {{{BASE, 44, DESCRIPTOR_INDIRECT | WRITE, 0}}},
     0,
     QueueFault::INDIRECT},
    {"NoHeader", TX_QUEUE, {{{BASE, 43, 0, 0}}}, 0, QueueFault::BUFFER_TOO_SMALL},
    {"Empty", TX_QUEUE, {{{BASE, 0, 0, 0}}}, 0, QueueFault::BUFFER_TOO_SMALL},
    {"NoPayloadInRx", RX_QUEUE, {{{BASE, 44, WRITE, 0}}}, 0, QueueFault::BUFFER_TOO_SMALL},
};

class BadChainTest : public DeviceTest, public ::testing::WithParamInterface<BadChain> {};

TEST_P(BadChainTest, StopsTheDeviceUntilItsDriverStartsOver) {
  const BadChain& bad = GetParam();
  const Opened opened = dial();
  for (std::size_t i = 0; i < bad.descriptors.size(); ++i)
    guest.describe(bad.queue, static_cast<std::uint16_t>(i), bad.descriptors[i]);
  guest.publish(bad.queue, bad.head);
  pump();
  const auto fault = device.takeFault();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->queue, bad.queue);
  EXPECT_EQ(fault->reason, bad.expected) << name(fault->reason);
  EXPECT_FALSE(device.takeFault());
  EXPECT_FALSE(device.ready());
  EXPECT_EQ(device.counters.queueFaults, 1U);
  EXPECT_TRUE(opened.client->closed);
  EXPECT_TRUE(dial().client->closed);
  EXPECT_EQ(guest.index(bad.queue, SimulatedGuest::USED_OFFSET).load(), 0)
      << "something was completed";

  for (std::size_t queue = 0; queue < QUEUE_COUNT; ++queue) device.stopQueue(queue);
  guest.forget();
  guest.offer();
  startRings();
  open();
}

INSTANTIATE_TEST_SUITE_P(Each, BadChainTest, ::testing::ValuesIn(BAD_CHAINS),
                         [](const auto& each) { return std::string(each.param.name); });

class AvailableIndexTest : public DeviceTest {};

TEST_F(AvailableIndexTest, MoreAnnouncedThanTheRingHoldsStopsTheDevice) {
  guest.index(TX_QUEUE, SimulatedGuest::AVAILABLE_OFFSET).store(SimulatedGuest::RING_SIZE + 1);
  pump();
  const auto fault = device.takeFault();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->reason, QueueFault::AVAILABLE_INDEX);
}

TEST_F(AvailableIndexTest, AnIndexThatGoesBackStopsTheDevice) {
  guest.send(guest.header(1, 1, VIRTIO_VSOCK_OP_RST));
  pump();
  guest.index(TX_QUEUE, SimulatedGuest::AVAILABLE_OFFSET).store(0);
  pump();
  const auto fault = device.takeFault();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->reason, QueueFault::AVAILABLE_INDEX);
}

// ---- Floods

TEST_F(HostileGuestTest, ConnectionsOverTheCapAreClosedAndMemoryStaysBounded) {
  std::vector<Opened> all;
  const std::string bytes(MAX_PAYLOAD, 'x');
  for (std::size_t i = 0; i < device.limits().connections; ++i) {
    Opened opened = dial();
    const Packet request = expect(VIRTIO_VSOCK_OP_REQUEST);
    ASSERT_EQ(request.header.src_port, opened.hostPort);
    send(opened, VIRTIO_VSOCK_OP_RESPONSE);
    opened.client->room = 0;
    // As much as the guest was granted, and not a byte of it read.
    for (std::uint32_t left = request.header.buf_alloc; left > 0;) {
      const std::uint32_t take = std::min(left, MAX_PAYLOAD);
      send(opened, VIRTIO_VSOCK_OP_RW, std::string_view(bytes).substr(0, take));
      left -= take;
    }
    all.push_back(std::move(opened));
  }
  EXPECT_EQ(device.counters.creditLies, 0U);
  EXPECT_LE(device.bufferedBytes(), 64U << 20);
  EXPECT_GT(device.bufferedBytes(), 48U << 20);
  const Opened over = dial();
  EXPECT_TRUE(over.client->closed);
  EXPECT_EQ(device.counters.overCap, 1U);
  all.front().client->ended = true;
  clientEvent(all.front(), true);
  expect(VIRTIO_VSOCK_OP_SHUTDOWN);
  send(all.front(), VIRTIO_VSOCK_OP_RST);
  EXPECT_FALSE(dial().client->closed);
}

class SmallShareTest : public DeviceTest {
 protected:
  static Limits small() {
    Limits limits;
    limits.packetsPerPump = 4;
    return limits;
  }
  SmallShareTest() : DeviceTest(small()) { guest.offer(); }
};

TEST_F(SmallShareTest, OnePumpTakesItsShareOfEachQueue) {
  for (int i = 0; i < 10; ++i) guest.send(guest.header(1, 1, VIRTIO_VSOCK_OP_REQUEST));
  EXPECT_TRUE(device.pump(now));
  EXPECT_EQ(guest.txCompleted(), 4);
  EXPECT_EQ(guest.index(RX_QUEUE, SimulatedGuest::USED_OFFSET).load(), 4);
  pump();
  EXPECT_EQ(guest.txCompleted(), 10);
}

TEST_F(SmallShareTest, BusyConnectionsTakeTurns) {
  const Opened one = open();
  const Opened other = open();
  one.client->sendsMore = other.client->sendsMore = 1 << 20;
  clientEvent(one);
  clientEvent(other);
  device.pump(now);
  Packet packet;
  std::array<int, 2> counts{};
  while (guest.take(packet)) ++counts[packet.header.src_port == one.hostPort ? 0 : 1];
  EXPECT_EQ(counts[0], 2);
  EXPECT_EQ(counts[1], 2);
}

}  // namespace
}  // namespace cordon::vsock::testing
