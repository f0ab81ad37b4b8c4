// Guest memory, rings' shapes and the byte ring.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "services/vsock/device/byte-ring.h"
#include "services/vsock/device/guest-memory.h"
#include "services/vsock/device/virtqueue.h"
#include "services/vsock/testing/simulated-guest.h"

namespace cordon::vsock::testing {
namespace {

class GuestMemoryTest : public ::testing::Test {
 protected:
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(300);
  GuestMemory memory;
};

TEST_F(GuestMemoryTest, RefusesRegionsThatContradictEachOther) {
  const auto refused = [&](std::vector<MemoryRegion> regions) { return !memory.assign(regions); };
  EXPECT_TRUE(refused({{0, 0, 0, bytes.data()}}));
  EXPECT_TRUE(refused({{UINT64_MAX - 10, 12, 0, bytes.data()}}));
  EXPECT_TRUE(refused({{0, 12, UINT64_MAX - 10, bytes.data()}}));
  EXPECT_TRUE(refused({{0, 100, 0, bytes.data()}, {99, 100, 1000, bytes.data()}}));
  EXPECT_TRUE(refused({{50, 100, 0, bytes.data()}, {0, 51, 1000, bytes.data()}}));
  EXPECT_TRUE(refused({{0, 100, 1000, bytes.data()}, {500, 100, 1099, bytes.data()}}));
  EXPECT_TRUE(memory.empty());
  EXPECT_FALSE(refused({{0, 100, 0, bytes.data()}, {100, 100, 100, bytes.data()}}));
  std::vector<MemoryRegion> many;
  for (std::uint64_t i = 0; i <= GuestMemory::MAX_REGIONS; ++i)
    many.push_back({i * 10, 10, i * 10, bytes.data()});
  EXPECT_TRUE(refused(many));
  many.pop_back();
  EXPECT_FALSE(refused(many));
}

TEST_F(GuestMemoryTest, GivesWhatARegionHasAndNothingBeyond) {
  const std::vector<MemoryRegion> regions = {{1000, 100, 5000, bytes.data()},
                                             {1100, 50, 7000, bytes.data() + 200}};
  ASSERT_TRUE(memory.assign(regions));
  EXPECT_EQ(memory.at(1000, 100).size(), 100U);
  EXPECT_EQ(memory.at(1090, 20).size(), 10U);
  EXPECT_EQ(memory.at(1100, 20).data(), bytes.data() + 200);
  EXPECT_EQ(memory.at(1099, UINT64_MAX).size(), 1U);
  EXPECT_TRUE(memory.at(999, 1).empty());
  EXPECT_TRUE(memory.at(1150, 1).empty());
  EXPECT_TRUE(memory.at(UINT64_MAX, 1).empty());
  EXPECT_EQ(memory.wholeAtFrontEnd(5090, 10), bytes.data() + 90);
  EXPECT_EQ(memory.wholeAtFrontEnd(5090, 11), nullptr);
  EXPECT_EQ(memory.wholeAtFrontEnd(1000, 1), nullptr);
  EXPECT_EQ(memory.wholeAtFrontEnd(5000, UINT64_MAX), nullptr);
}

class VirtqueueStartTest : public ::testing::Test {
 protected:
  VirtqueueStartTest() : guest(align(storage), 3) {
    const MemoryRegion region = guest.region();
    EXPECT_TRUE(memory.assign({&region, 1}));
  }
  static std::uint8_t* align(std::vector<std::uint8_t>& bytes) {
    void* where = bytes.data();
    std::size_t space = bytes.size();
    return static_cast<std::uint8_t*>(std::align(4096, SimulatedGuest::MEMORY_SIZE, where, space));
  }
  QueueFault start(std::uint64_t descriptors, std::uint64_t available, std::uint64_t used,
                   std::uint32_t size = 128) {
    return queue.start(memory, {descriptors, available, used}, size, 0);
  }
  std::vector<std::uint8_t> storage = std::vector<std::uint8_t>(SimulatedGuest::MEMORY_SIZE + 4096);
  SimulatedGuest guest;
  GuestMemory memory;
  Virtqueue queue{Virtqueue::Direction::READABLE};
  static constexpr std::uint64_t BASE = SimulatedGuest::FRONT_END_BASE;
  static constexpr std::uint64_t END = BASE + SimulatedGuest::MEMORY_SIZE;
};

TEST_F(VirtqueueStartTest, RefusesSizesThatAreNone) {
  for (const std::uint32_t size : {0U, 3U, 127U, 2048U, 65536U, UINT32_MAX}) {
    EXPECT_EQ(start(BASE, BASE + 0x1000, BASE + 0x2000, size), QueueFault::RING_SIZE) << size;
    EXPECT_FALSE(queue.running());
  }
  for (const std::uint32_t size : {1U, 2U, 128U, 1024U}) {
    EXPECT_EQ(start(BASE, BASE + 0x8000, BASE + 0xc000, size), QueueFault::NONE) << size;
  }
}

TEST_F(VirtqueueStartTest, RefusesRingsThatAreNotAligned) {
  EXPECT_EQ(start(BASE + 8, BASE + 0x1000, BASE + 0x2000), QueueFault::RING_ALIGNMENT);
  EXPECT_EQ(start(BASE, BASE + 0x1001, BASE + 0x2000), QueueFault::RING_ALIGNMENT);
  EXPECT_EQ(start(BASE, BASE + 0x1000, BASE + 0x2002), QueueFault::RING_ALIGNMENT);
  EXPECT_FALSE(queue.running());
}

TEST_F(VirtqueueStartTest, RefusesRingsOutsideMemory) {
  EXPECT_EQ(start(END - 16, BASE + 0x1000, BASE + 0x2000), QueueFault::RING_ADDRESS);
  EXPECT_EQ(start(BASE, END - 4, BASE + 0x2000), QueueFault::RING_ADDRESS);
  EXPECT_EQ(start(BASE, BASE + 0x1000, END - 8), QueueFault::RING_ADDRESS);
  EXPECT_EQ(start(SimulatedGuest::GUEST_BASE, BASE + 0x1000, BASE + 0x2000),
            QueueFault::RING_ADDRESS);
  EXPECT_EQ(start(BASE, BASE + 0x1000, UINT64_MAX - 3), QueueFault::RING_ADDRESS);
  EXPECT_EQ(start(END - std::uint64_t{128} * 16, BASE + 0x1000, BASE + 0x2000), QueueFault::NONE);
}

TEST_F(VirtqueueStartTest, LosesItsRingsWithTheMemoryTheyWereIn) {
  ASSERT_EQ(start(BASE, BASE + 0x1000, BASE + 0x2000), QueueFault::NONE);
  EXPECT_EQ(queue.rebind(memory), QueueFault::NONE);
  EXPECT_TRUE(queue.running());
  GuestMemory other;
  const MemoryRegion elsewhere{0, 100, 0, storage.data()};
  ASSERT_TRUE(other.assign({&elsewhere, 1}));
  EXPECT_EQ(queue.rebind(other), QueueFault::RING_ADDRESS);
  EXPECT_FALSE(queue.running());
  Virtqueue::Chain chain;
  EXPECT_EQ(queue.peek(other, chain), Virtqueue::Peek::BROKEN);
}

TEST(ByteRingTest, KeepsOrderAcrossItsEnd) {
  ByteRing ring(10);
  std::string expected;
  std::string read;
  const auto drain = [&](std::size_t bytes) {
    for (const iovec& piece : ring.pieces()) {
      const std::size_t take = std::min(bytes, piece.iov_len);
      read.append(static_cast<const char*>(piece.iov_base), take);
      ring.drop(take);
      bytes -= take;
      break;
    }
  };
  for (int i = 0; i < 1000; ++i) {
    const std::string more(static_cast<std::size_t>(i % 4), static_cast<char>('a' + i % 26));
    const std::span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(more.data()),
                                              more.size());
    if (ring.append(bytes)) {
      expected += more;
    } else {
      EXPECT_GT(ring.size() + more.size(), 10U);
    }
    drain(static_cast<std::size_t>(i % 3));
  }
  while (!ring.empty()) drain(10);
  EXPECT_EQ(read, expected);
}

TEST(ByteRingTest, RefusesWhatDoesNotFitAndStoresNoneOfIt) {
  ByteRing ring(4);
  const std::uint8_t bytes[5] = {};
  EXPECT_FALSE(ring.append(bytes));
  EXPECT_TRUE(ring.empty());
  EXPECT_TRUE(ring.append({bytes, 4}));
  EXPECT_FALSE(ring.append({bytes, 1}));
}

}  // namespace
}  // namespace cordon::vsock::testing
