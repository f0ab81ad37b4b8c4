#include "services/vsock/device/virtqueue.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>

#include "services/vsock/device/ring-layout.h"
namespace cordon::vsock {
namespace {

// virtio 1.x is little-endian on every host.
static_assert(std::endian::native == std::endian::little,
              "a big-endian host needs byte swaps here");

// The one way in which 16-bit fields of rings are touched: whole, aligned (start() checked it), and
// never twice.
std::uint16_t load16(std::uint8_t* where, std::memory_order order) {
  return std::atomic_ref<std::uint16_t>(*reinterpret_cast<std::uint16_t*>(where)).load(order);
}

void store16(std::uint8_t* where, std::uint16_t value, std::memory_order order) {
  std::atomic_ref<std::uint16_t>(*reinterpret_cast<std::uint16_t*>(where)).store(value, order);
}

bool aligned(const std::uint8_t* where, std::uintptr_t to) {
  return reinterpret_cast<std::uintptr_t>(where) % to == 0;
}

}  // namespace

std::string_view name(QueueFault fault) {
  switch (fault) {
    case QueueFault::NONE:
      return "none";
    case QueueFault::RING_SIZE:
      return "ring-size";
    case QueueFault::RING_ALIGNMENT:
      return "ring-alignment";
    case QueueFault::RING_ADDRESS:
      return "ring-address";
    case QueueFault::AVAILABLE_INDEX:
      return "available-index";
    case QueueFault::HEAD_INDEX:
      return "head-index";
    case QueueFault::NEXT_INDEX:
      return "next-index";
    case QueueFault::CHAIN_LENGTH:
      return "chain-length";
    case QueueFault::INDIRECT:
      return "indirect";
    case QueueFault::DIRECTION:
      return "direction";
    case QueueFault::BUFFER_ADDRESS:
      return "buffer-address";
    case QueueFault::BUFFER_TOO_SMALL:
      return "buffer-too-small";
  }
  return "unknown";
}

std::size_t Virtqueue::Chain::slice(std::size_t skip, std::size_t length,
                                    std::array<iovec, MAX_SEGMENTS>& pieces) const {
  std::size_t filled = 0;
  for (std::size_t i = 0; i < count && length > 0; ++i) {
    const iovec& segment = segments[i];
    if (segment.iov_len <= skip) {
      skip -= segment.iov_len;
      continue;
    }
    const std::size_t take = std::min(segment.iov_len - skip, length);
    pieces[filled++] = {static_cast<std::uint8_t*>(segment.iov_base) + skip, take};
    skip = 0;
    length -= take;
  }
  return filled;
}

QueueFault Virtqueue::start(const GuestMemory& memory, const RingAddresses& where,
                            std::uint32_t ringSize, std::uint16_t base) {
  stop();
  broken = QueueFault::NONE;
  if (ringSize == 0 || ringSize > MAX_RING_SIZE || !std::has_single_bit(ringSize)) {
    return breakWith(QueueFault::RING_SIZE);
  }
  size = static_cast<std::uint16_t>(ringSize);
  addresses = where;
  if (resolve(memory) != QueueFault::NONE) return broken;
  nextAvailable = base;
  // The driver's count of what it took back goes on from here, whatever `base` is.
  nextUsed = load16(used + RING_INDEX_OFFSET, std::memory_order_relaxed);
  completedSome = false;
  return QueueFault::NONE;
}

QueueFault Virtqueue::rebind(const GuestMemory& memory) {
  return running() ? resolve(memory) : QueueFault::NONE;
}

QueueFault Virtqueue::resolve(const GuestMemory& memory) {
  descriptors = available = used = nullptr;
  std::uint8_t* table = memory.wholeAtFrontEnd(addresses.descriptors, descriptorTableSize(size));
  std::uint8_t* offered = memory.wholeAtFrontEnd(addresses.available, availableRingSize(size));
  std::uint8_t* returned = memory.wholeAtFrontEnd(addresses.used, usedRingSize(size));
  if (table == nullptr || offered == nullptr || returned == nullptr) {
    return breakWith(QueueFault::RING_ADDRESS);
  }
  if (!aligned(table, 16) || !aligned(offered, 2) || !aligned(returned, 4)) {
    return breakWith(QueueFault::RING_ALIGNMENT);
  }
  descriptors = table;
  available = offered;
  used = returned;
  return QueueFault::NONE;
}

std::uint16_t Virtqueue::stop() {
  descriptors = available = used = nullptr;
  completedSome = false;
  return nextAvailable;
}

QueueFault Virtqueue::breakWith(QueueFault reason) {
  broken = reason;
  return reason;
}

Virtqueue::Peek Virtqueue::peek(const GuestMemory& memory, Chain& chain) {
  if (!running()) return broken == QueueFault::NONE ? Peek::EMPTY : Peek::BROKEN;
  const auto fail = [this](QueueFault reason) {
    breakWith(reason);
    return Peek::BROKEN;
  };

  const std::uint16_t announced = load16(available + RING_INDEX_OFFSET, std::memory_order_acquire);
  const auto waiting = static_cast<std::uint16_t>(announced - nextAvailable);
  if (waiting == 0) return Peek::EMPTY;
  if (waiting > size) return fail(QueueFault::AVAILABLE_INDEX);

  const std::size_t slot = nextAvailable % size;
  std::uint16_t index =
      load16(available + RING_ENTRIES_OFFSET + 2 * slot, std::memory_order_relaxed);
  if (index >= size) return fail(QueueFault::HEAD_INDEX);

  chain.head = index;
  chain.count = 0;
  chain.bytes = 0;
  for (std::size_t links = 1;; ++links) {
    if (links > std::min<std::size_t>(size, MAX_SEGMENTS)) return fail(QueueFault::CHAIN_LENGTH);
    RingDescriptor descriptor;
    std::memcpy(&descriptor, descriptors + sizeof(descriptor) * index, sizeof(descriptor));
    if ((descriptor.flags & DESCRIPTOR_INDIRECT) != 0) return fail(QueueFault::INDIRECT);
    const bool writable = (descriptor.flags & DESCRIPTOR_WRITE) != 0;
    if (writable != (direction == Direction::WRITABLE)) return fail(QueueFault::DIRECTION);

    std::uint64_t address = descriptor.address;
    std::uint64_t left = descriptor.length;
    while (left > 0) {
      const std::span<std::uint8_t> piece = memory.at(address, left);
      if (piece.empty()) return fail(QueueFault::BUFFER_ADDRESS);
      if (chain.count == MAX_SEGMENTS) return fail(QueueFault::CHAIN_LENGTH);
      chain.segments[chain.count++] = {piece.data(), piece.size()};
      chain.bytes += piece.size();
      left -= piece.size();
      if (left > 0 && address > std::numeric_limits<std::uint64_t>::max() - piece.size()) {
        return fail(QueueFault::BUFFER_ADDRESS);
      }
      address += piece.size();
    }

    if ((descriptor.flags & DESCRIPTOR_NEXT) == 0) return Peek::READY;
    if (descriptor.next >= size) return fail(QueueFault::NEXT_INDEX);
    index = descriptor.next;
  }
}

void Virtqueue::complete(const Chain& chain, std::uint32_t written) {
  if (!running()) return;
  const UsedElement element{chain.head, written};
  std::memcpy(used + RING_ENTRIES_OFFSET + sizeof(element) * (nextUsed % size), &element,
              sizeof(element));
  ++nextUsed;
  ++nextAvailable;
  store16(used + RING_INDEX_OFFSET, nextUsed, std::memory_order_release);
  completedSome = true;
}

bool Virtqueue::takeInterrupt() {
  if (!running() || !completedSome) return false;
  completedSome = false;
  // The driver clears its flag and then looks at the used index; we wrote the index and now look at
  // the flag.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return (load16(available + RING_FLAGS_OFFSET, std::memory_order_relaxed) &
          AVAILABLE_NO_INTERRUPT) == 0;
}

void Virtqueue::suppressKicks() {
  if (running()) store16(used + RING_FLAGS_OFFSET, USED_NO_KICK, std::memory_order_relaxed);
}

bool Virtqueue::wantKicks() {
  if (!running()) return false;
  store16(used + RING_FLAGS_OFFSET, 0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return load16(available + RING_INDEX_OFFSET, std::memory_order_relaxed) != nextAvailable;
}

}  // namespace cordon::vsock
