// A guest's virtio-vsock driver over a piece of memory, honest or not: for tests and the benchmark.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "services/vsock/device/device.h"
#include "services/vsock/device/ring-layout.h"

namespace cordon::vsock::testing {

struct Packet {
  PacketHeader header{};
  std::string payload;
};

class SimulatedGuest {
 public:
  static constexpr std::uint64_t GUEST_BASE = 0x100000;  // where the guest sees its memory
  static constexpr std::uint64_t FRONT_END_BASE = 0x7f00'0000'0000;  // where the front end does
  static constexpr std::uint16_t RING_SIZE = 128;
  static constexpr std::size_t BUFFER = HEADER_SIZE + MAX_PAYLOAD;
  static constexpr std::size_t STRIDE = 0x11000;
  static constexpr std::uint16_t TX_SLOTS =
      RING_SIZE / 2;  // a packet is two descriptors: header, payload
  static constexpr std::size_t MEMORY_SIZE = 0x10000 + STRIDE * (RING_SIZE + TX_SLOTS);

  // `where`: MEMORY_SIZE zeroed bytes, aligned to 4096. rxBuffer: bytes of an rx buffer, header
  // included.
  explicit SimulatedGuest(std::uint8_t* where, std::uint64_t ownCid, std::size_t rxBuffer = BUFFER)
      : memory(where), cid(ownCid), rxBufferSize(rxBuffer) {}

  MemoryRegion region() const { return {GUEST_BASE, MEMORY_SIZE, FRONT_END_BASE, memory}; }
  RingAddresses rings(std::size_t queue) const {
    const std::uint64_t base = FRONT_END_BASE + ringOffset(queue);
    return {base, base + AVAILABLE_OFFSET, base + USED_OFFSET};
  }

  // ---- rx
  // Offers `count` buffers.
  void offer(std::uint16_t count = RING_SIZE);
  // The next packet, whose buffer is offered again unless `keep`.
  bool take(Packet& packet, bool keep = false);

  // ---- tx
  PacketHeader header(std::uint32_t hostPort, std::uint32_t guestPort, std::uint16_t op) const;
  // False if the ring is full. header.len is sent as it is: it may lie.
  bool send(const PacketHeader& packet, std::string_view payload = {});
  bool hasTxRoom();
  std::uint16_t txCompleted() {
    return index(TX_QUEUE, USED_OFFSET).load(std::memory_order_acquire);
  }

  // ---- bytes as a hostile driver writes them
  void describe(std::size_t queue, std::uint16_t at, const RingDescriptor& descriptor);
  void publish(std::size_t queue, std::uint16_t head);
  std::atomic_ref<std::uint16_t> index(std::size_t queue, std::size_t offset) {
    return std::atomic_ref<std::uint16_t>(
        *reinterpret_cast<std::uint16_t*>(ring(queue) + offset + RING_INDEX_OFFSET));
  }
  std::atomic_ref<std::uint16_t> flags(std::size_t queue, std::size_t offset) {
    return std::atomic_ref<std::uint16_t>(
        *reinterpret_cast<std::uint16_t*>(ring(queue) + offset + RING_FLAGS_OFFSET));
  }
  // A driver that starts over.
  void forget();
  std::uint64_t guestAddress(const std::uint8_t* where) const {
    return GUEST_BASE + static_cast<std::uint64_t>(where - memory);
  }
  std::uint8_t* rxBuffer(std::uint16_t slot) { return memory + 0x10000 + STRIDE * slot; }
  std::uint8_t* txBuffer(std::uint16_t slot) {
    return memory + 0x10000 + STRIDE * (RING_SIZE + slot);
  }

  static constexpr std::size_t AVAILABLE_OFFSET = 0x1000;
  static constexpr std::size_t USED_OFFSET = 0x2000;

 private:
  static std::size_t ringOffset(std::size_t queue) { return 0x4000 * queue; }
  std::uint8_t* ring(std::size_t queue) { return memory + ringOffset(queue); }
  void offerSlot(std::uint16_t slot);

  std::uint8_t* memory;
  std::uint64_t cid;
  std::size_t rxBufferSize;
  std::uint16_t nextRx = 0;
  std::uint16_t nextTx = 0;
  std::uint16_t seenUsed[2] = {0, 0};
};

}  // namespace cordon::vsock::testing
