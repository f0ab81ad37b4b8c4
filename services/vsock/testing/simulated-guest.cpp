#include "services/vsock/testing/simulated-guest.h"

#include <cstring>

namespace cordon::vsock::testing {

void SimulatedGuest::offer(std::uint16_t count) {
  for (std::uint16_t i = 0; i < count; ++i)
    offerSlot(static_cast<std::uint16_t>(nextRx++ % RING_SIZE));
}

bool SimulatedGuest::take(Packet& packet, bool keep) {
  const std::uint16_t published = index(RX_QUEUE, USED_OFFSET).load(std::memory_order_acquire);
  if (published == seenUsed[RX_QUEUE]) return false;
  UsedElement element;
  std::memcpy(&element,
              ring(RX_QUEUE) + USED_OFFSET + RING_ENTRIES_OFFSET +
                  sizeof(element) * (seenUsed[RX_QUEUE]++ % RING_SIZE),
              sizeof(element));
  const std::uint8_t* buffer = rxBuffer(static_cast<std::uint16_t>(element.head));
  std::memcpy(&packet.header, buffer, HEADER_SIZE);
  packet.payload.assign(reinterpret_cast<const char*>(buffer) + HEADER_SIZE,
                        element.written - HEADER_SIZE);
  if (!keep) offerSlot(static_cast<std::uint16_t>(element.head));
  return true;
}

PacketHeader SimulatedGuest::header(std::uint32_t hostPort, std::uint32_t guestPort,
                                    std::uint16_t op) const {
  PacketHeader result{};
  result.src_cid = cid;
  result.dst_cid = HOST_CID;
  result.src_port = guestPort;
  result.dst_port = hostPort;
  result.type = VIRTIO_VSOCK_TYPE_STREAM;
  result.op = op;
  result.buf_alloc = 256 * 1024;
  return result;
}

bool SimulatedGuest::send(const PacketHeader& packet, std::string_view payload) {
  if (!hasTxRoom()) return false;
  const auto slot = static_cast<std::uint16_t>(nextTx++ % TX_SLOTS);
  std::uint8_t* buffer = txBuffer(slot);
  std::memcpy(buffer, &packet, HEADER_SIZE);
  if (!payload.empty()) std::memcpy(buffer + HEADER_SIZE, payload.data(), payload.size());
  const auto first = static_cast<std::uint16_t>(2 * slot);
  const bool two = !payload.empty();
  describe(TX_QUEUE, first,
           {guestAddress(buffer), HEADER_SIZE, two ? DESCRIPTOR_NEXT : std::uint16_t{0},
            static_cast<std::uint16_t>(first + 1)});
  describe(TX_QUEUE, static_cast<std::uint16_t>(first + 1),
           {guestAddress(buffer) + HEADER_SIZE, static_cast<std::uint32_t>(payload.size()), 0, 0});
  publish(TX_QUEUE, first);
  return true;
}

bool SimulatedGuest::hasTxRoom() {
  seenUsed[TX_QUEUE] = index(TX_QUEUE, USED_OFFSET).load(std::memory_order_acquire);
  return static_cast<std::uint16_t>(nextTx - seenUsed[TX_QUEUE]) < TX_SLOTS;
}

void SimulatedGuest::describe(std::size_t queue, std::uint16_t at,
                              const RingDescriptor& descriptor) {
  std::memcpy(ring(queue) + sizeof(descriptor) * at, &descriptor, sizeof(descriptor));
}

void SimulatedGuest::publish(std::size_t queue, std::uint16_t head) {
  auto available = index(queue, AVAILABLE_OFFSET);
  const std::uint16_t at = available.load(std::memory_order_relaxed);
  std::memcpy(
      ring(queue) + AVAILABLE_OFFSET + RING_ENTRIES_OFFSET + std::size_t{2} * (at % RING_SIZE),
      &head, 2);
  available.store(static_cast<std::uint16_t>(at + 1), std::memory_order_release);
}

void SimulatedGuest::forget() {
  std::memset(memory, 0, 0x10000);
  nextRx = nextTx = 0;
  seenUsed[0] = seenUsed[1] = 0;
}

void SimulatedGuest::offerSlot(std::uint16_t slot) {
  describe(RX_QUEUE, slot,
           {guestAddress(rxBuffer(slot)), static_cast<std::uint32_t>(rxBufferSize),
            DESCRIPTOR_WRITE, 0});
  publish(RX_QUEUE, slot);
}

}  // namespace cordon::vsock::testing
