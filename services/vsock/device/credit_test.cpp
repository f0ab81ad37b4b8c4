#include "services/vsock/device/credit.h"

#include <cstdint>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "services/vsock/testing/device-test.h"

namespace cordon::vsock::testing {
namespace {

constexpr std::uint32_t STARTS[] = {
    0, 1, UINT32_MAX, UINT32_MAX - 1000, UINT32_MAX - 300'000, 1U << 31, (1U << 31) - 5};

TEST(SendCreditTest, NeverExceedsThePeersBufferWhateverTheCountersAre) {
  std::mt19937 random(1);
  for (const std::uint32_t start : STARTS) {
    SendCredit credit(start);
    constexpr std::uint32_t BUFFER = 256 * 1024;
    std::uint64_t sent = 0;
    std::uint64_t consumed = 0;
    ASSERT_EQ(credit.update(BUFFER, start), SendCredit::Update::ACCEPTED);
    for (int i = 0; i < 50'000; ++i) {
      ASSERT_EQ(credit.available(), BUFFER - (sent - consumed));
      const std::uint32_t take =
          credit.available() == 0 ? 0
                                  : static_cast<std::uint32_t>(random() % credit.available() + 1);
      credit.spend(take);
      sent += take;
      if (sent > consumed) consumed += random() % (sent - consumed) + (random() % 2);
      ASSERT_EQ(credit.update(BUFFER, start + static_cast<std::uint32_t>(consumed)),
                SendCredit::Update::ACCEPTED);
    }
    EXPECT_GT(sent, std::uint64_t{4} << 30) << "the counters never wrapped";
  }
}

TEST(SendCreditTest, TellsAStaleCountFromALie) {
  for (const std::uint32_t start : STARTS) {
    SendCredit credit(start);
    ASSERT_EQ(credit.update(1000, start), SendCredit::Update::ACCEPTED);
    credit.spend(600);
    EXPECT_EQ(credit.update(1000, start + 601), SendCredit::Update::LIE);
    EXPECT_EQ(credit.update(1000, start + (1U << 30)), SendCredit::Update::LIE);
    EXPECT_EQ(credit.available(), 400U);
    EXPECT_EQ(credit.update(1000, start + 600), SendCredit::Update::ACCEPTED);
    EXPECT_EQ(credit.available(), 1000U);
    EXPECT_EQ(credit.update(5000, start + 599), SendCredit::Update::STALE);
    EXPECT_EQ(credit.available(), 1000U);
  }
}

TEST(SendCreditTest, HasNoneBelowWhatIsInFlight) {
  SendCredit credit;
  ASSERT_EQ(credit.update(1000, 0), SendCredit::Update::ACCEPTED);
  credit.spend(1000);
  ASSERT_EQ(credit.update(10, 0), SendCredit::Update::ACCEPTED);
  EXPECT_EQ(credit.available(), 0U);
  ASSERT_EQ(credit.update(0, 1000), SendCredit::Update::ACCEPTED);
  EXPECT_EQ(credit.available(), 0U);
}

TEST(SendCreditTest, BoundsWhatAnyPeerGetsInFlight) {
  SendCredit credit;
  ASSERT_EQ(credit.update(UINT32_MAX, 0), SendCredit::Update::ACCEPTED);
  EXPECT_EQ(credit.available(), SendCredit::MAX_IN_FLIGHT);
}

TEST(ReceiveCreditTest, GrantsExactlyItsBufferWhateverTheCountersAre) {
  std::mt19937 random(2);
  for (const std::uint32_t start : STARTS) {
    constexpr std::uint32_t BUFFER = 16 * 1024;
    ReceiveCredit credit(BUFFER, start);
    std::uint32_t inBuffer = 0;
    for (int i = 0; i < 100'000; ++i) {
      ASSERT_FALSE(credit.receive(BUFFER - inBuffer + 1));
      const auto take = static_cast<std::uint32_t>(random() % (BUFFER - inBuffer + 1));
      ASSERT_TRUE(credit.receive(take));
      inBuffer += take;
      const auto out = static_cast<std::uint32_t>(random() % (inBuffer + 1));
      credit.consume(out);
      inBuffer -= out;
      if (credit.worthTelling()) credit.tell();
      ASSERT_FALSE(credit.worthTelling());
    }
  }
}

TEST(ReceiveCreditTest, IsWorthTellingBeforeThePeerIsStuck) {
  ReceiveCredit credit(1000);
  ASSERT_TRUE(credit.receive(1000));
  EXPECT_FALSE(credit.worthTelling());  // nothing was consumed
  credit.consume(1);
  EXPECT_TRUE(credit.worthTelling());
  credit.tell();
  EXPECT_FALSE(credit.worthTelling());
}

class CreditWrapTest : public DeviceTest {
 protected:
  CreditWrapTest() { guest.offer(); }
};

// §C 5: counters that wrapped, buffers that overran, streams that stalled. 5 GiB, counted and not
// looked at.
TEST_F(CreditWrapTest, FiveGibibytesGoToTheGuest) {
  const Opened opened = open();
  constexpr std::uint64_t TOTAL = std::uint64_t{5} << 30;
  opened.client->sendsMore = TOTAL;
  clientEvent(opened);
  std::uint64_t received = 0;
  Packet packet;
  PacketHeader update = guest.header(opened.hostPort, PORT, VIRTIO_VSOCK_OP_CREDIT_UPDATE);
  while (received < TOTAL) {
    device.pump(now);
    std::uint32_t inFlight = 0;
    bool moved = false;
    while (guest.take(packet)) {
      moved = true;
      ASSERT_TRUE(packet.header.op == VIRTIO_VSOCK_OP_RW ||
                  packet.header.op == VIRTIO_VSOCK_OP_CREDIT_REQUEST);
      inFlight += packet.header.len;
    }
    ASSERT_TRUE(moved) << "stalled after " << received << " bytes";
    ASSERT_LE(inFlight, update.buf_alloc);
    received += inFlight;
    update.fwd_cnt = static_cast<std::uint32_t>(received);
    ASSERT_TRUE(guest.send(update));
  }
  pump();
  EXPECT_EQ(received, TOTAL);
  EXPECT_EQ(device.counters.toGuestBytes, TOTAL);
  EXPECT_EQ(device.counters.creditLies, 0U);
  expectSilence();
}

TEST_F(CreditWrapTest, FourGibibytesGoToASlowReader) {
  const Opened opened = open();
  constexpr std::uint64_t TOTAL = (std::uint64_t{1} << 32) + (64U << 20);
  opened.client->keeps = false;
  opened.client->room = 0;
  const std::string bytes(MAX_PAYLOAD, 'x');
  std::uint64_t sent = 0;
  std::uint32_t granted = device.limits().largeBuffer;
  std::uint32_t consumed = 0;
  PacketHeader header = guest.header(opened.hostPort, PORT, VIRTIO_VSOCK_OP_RW);
  Packet packet;
  while (sent < TOTAL) {
    const std::uint32_t credit = granted - (static_cast<std::uint32_t>(sent) - consumed);
    header.len = std::min(credit, MAX_PAYLOAD);
    if (header.len > 0) {
      ASSERT_TRUE(guest.send(header, std::string_view(bytes).substr(0, header.len)));
      sent += header.len;
    }
    ASSERT_LE(device.bufferedBytes(), device.limits().largeBuffer);
    if (header.len == 0 || sent % 7 == 0) {
      opened.client->room = 100'000;  // never a whole number of packets
      clientEvent(opened);
    }
    pump();
    while (guest.take(packet)) {
      ASSERT_EQ(packet.header.op, VIRTIO_VSOCK_OP_CREDIT_UPDATE);
      consumed = packet.header.fwd_cnt;
    }
  }
  opened.client->room = SIZE_MAX;
  clientEvent(opened);
  EXPECT_EQ(opened.client->receivedBytes, sent);
  EXPECT_EQ(device.counters.creditLies, 0U);
}

}  // namespace
}  // namespace cordon::vsock::testing
