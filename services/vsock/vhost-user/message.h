// The vhost-user protocol, as far as a front end of a virtio-vsock device uses it. Source: QEMU's
// docs/interop/vhost-user.rst; layouts are those of the wire on little-endian hosts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cordon::vsock {

enum class Request : std::uint32_t {
  GET_FEATURES = 1,
  SET_FEATURES = 2,
  SET_OWNER = 3,
  RESET_OWNER = 4,
  SET_MEM_TABLE = 5,
  SET_VRING_NUM = 8,
  SET_VRING_ADDR = 9,
  SET_VRING_BASE = 10,
  GET_VRING_BASE = 11,
  SET_VRING_KICK = 12,
  SET_VRING_CALL = 13,
  SET_VRING_ERR = 14,
  GET_PROTOCOL_FEATURES = 15,
  SET_PROTOCOL_FEATURES = 16,
  GET_QUEUE_NUM = 17,
  SET_VRING_ENABLE = 18,
  GET_CONFIG = 24,
  SET_CONFIG = 25,
};

struct MessageHeader {
  std::uint32_t request;
  std::uint32_t flags;
  std::uint32_t size;  // of what follows
};
static_assert(sizeof(MessageHeader) == 12);

inline constexpr std::uint32_t PROTOCOL_VERSION_MASK = 0x3;
inline constexpr std::uint32_t PROTOCOL_VERSION = 0x1;
inline constexpr std::uint32_t FLAG_REPLY = 0x4;
inline constexpr std::uint32_t FLAG_NEED_REPLY = 0x8;
inline constexpr std::uint32_t KNOWN_FLAGS = PROTOCOL_VERSION_MASK | FLAG_REPLY | FLAG_NEED_REPLY;

struct VringState {
  std::uint32_t index;
  std::uint32_t value;
};
struct VringAddress {
  std::uint32_t index;
  std::uint32_t flags;  // bit 0: log writes for migration
  std::uint64_t descriptors;
  std::uint64_t used;
  std::uint64_t available;
  std::uint64_t log;
};
static_assert(sizeof(VringAddress) == 40);

struct MemoryTableHeader {
  std::uint32_t regions;
  std::uint32_t padding;
};
struct MemoryTableRegion {
  std::uint64_t guestAddress;
  std::uint64_t size;
  std::uint64_t frontEndAddress;
  std::uint64_t mmapOffset;
};
static_assert(sizeof(MemoryTableRegion) == 32);

struct ConfigHeader {
  std::uint32_t offset;
  std::uint32_t size;
  std::uint32_t flags;
};
inline constexpr std::size_t MAX_CONFIG_SIZE = 256;

// Of SET_VRING_KICK, CALL and ERR: the ring, and whether no descriptor comes.
inline constexpr std::uint64_t VRING_INDEX_MASK = 0xff;
inline constexpr std::uint64_t VRING_NO_FD = 0x100;

inline constexpr std::uint64_t PROTOCOL_F_MQ = 1ULL << 0;
inline constexpr std::uint64_t PROTOCOL_F_REPLY_ACK = 1ULL << 3;
inline constexpr std::uint64_t PROTOCOL_F_CONFIG = 1ULL << 9;
inline constexpr std::uint64_t VHOST_USER_F_PROTOCOL_FEATURES = 1ULL << 30;

inline constexpr std::size_t MAX_MESSAGE_FDS = 8;     // SET_MEM_TABLE has the most
inline constexpr std::size_t MAX_MESSAGE_SIZE = 320;  // GET_CONFIG has the largest, 12 + 256

}  // namespace cordon::vsock
