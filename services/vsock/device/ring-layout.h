// The bytes of a split virtqueue (virtio 1.2, §2.7). The kernel's own header is no C++.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cordon::vsock {

struct RingDescriptor {
  std::uint64_t address;
  std::uint32_t length;
  std::uint16_t flags;
  std::uint16_t next;
};
static_assert(sizeof(RingDescriptor) == 16);

inline constexpr std::uint16_t DESCRIPTOR_NEXT = 1;
inline constexpr std::uint16_t DESCRIPTOR_WRITE = 2;  // by the device
inline constexpr std::uint16_t DESCRIPTOR_INDIRECT = 4;

struct UsedElement {
  std::uint32_t head;
  std::uint32_t written;
};
static_assert(sizeof(UsedElement) == 8);

inline constexpr std::uint16_t USED_NO_KICK = 1;            // flags of the used ring
inline constexpr std::uint16_t AVAILABLE_NO_INTERRUPT = 1;  // flags of the available ring

inline constexpr std::size_t RING_FLAGS_OFFSET = 0;  // of both rings: u16 flags, u16 index, entries
inline constexpr std::size_t RING_INDEX_OFFSET = 2;
inline constexpr std::size_t RING_ENTRIES_OFFSET = 4;

constexpr std::size_t descriptorTableSize(std::size_t ringSize) {
  return sizeof(RingDescriptor) * ringSize;
}
constexpr std::size_t availableRingSize(std::size_t ringSize) {
  return RING_ENTRIES_OFFSET + 2 * ringSize;
}
constexpr std::size_t usedRingSize(std::size_t ringSize) {
  return RING_ENTRIES_OFFSET + sizeof(UsedElement) * ringSize;
}

}  // namespace cordon::vsock
