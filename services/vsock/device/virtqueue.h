// The device's side of one split virtqueue (virtio 1.2, §2.7), over memory that the guest rewrites
// as it likes. Rules: a descriptor is copied once and then judged; nothing the guest wrote is a
// bound of a loop; the first thing an honest driver cannot have done breaks the queue for good,
// until it is started anew.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <sys/uio.h>

#include "services/vsock/device/guest-memory.h"

namespace cordon::vsock {

enum class QueueFault : std::uint8_t {
  NONE,
  RING_SIZE,         // 0, over MAX_RING_SIZE or not a power of two
  RING_ALIGNMENT,    // descriptor table 16, available ring 2, used ring 4 bytes
  RING_ADDRESS,      // a ring does not lie whole in one region
  AVAILABLE_INDEX,   // more announced than the ring can hold
  HEAD_INDEX,        // the head of a chain is no descriptor of the table
  NEXT_INDEX,        // so is a link
  CHAIN_LENGTH,      // more links than MAX_SEGMENTS or the ring has: a loop, or an absurdity
  INDIRECT,          // an indirect table, which was not offered
  DIRECTION,         // device-writable in tx, device-readable in rx
  BUFFER_ADDRESS,    // a buffer outside guest memory
  BUFFER_TOO_SMALL,  // a chain that cannot hold a packet header
};
std::string_view name(QueueFault fault);

// Ring addresses as the front end gives them, in its own address space.
struct RingAddresses {
  std::uint64_t descriptors = 0;
  std::uint64_t available = 0;
  std::uint64_t used = 0;
};

class Virtqueue {
 public:
  static constexpr std::uint16_t MAX_RING_SIZE = 1024;  // QEMU's vsock rings have 128
  static constexpr std::size_t MAX_SEGMENTS = 64;       // Linux uses 2 (header, data), at most 19

  enum class Direction : std::uint8_t { READABLE, WRITABLE };  // by the device
  enum class Peek : std::uint8_t { EMPTY, READY, BROKEN };

  // A buffer of the guest's, cut where it crosses memory regions.
  struct Chain {
    std::uint16_t head = 0;
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    std::array<iovec, MAX_SEGMENTS>
        segments;  // the first `count` are set; each lies in mapped memory

    // Bytes [skip, skip + length) of the buffer, as far as it has them; returns the number of
    // pieces.
    std::size_t slice(std::size_t skip, std::size_t length,
                      std::array<iovec, MAX_SEGMENTS>& pieces) const;
  };

  explicit Virtqueue(Direction allowed) : direction(allowed) {}

  // Any fault leaves the queue stopped. `base` is the index of the next chain to take.
  QueueFault start(const GuestMemory& memory, const RingAddresses& where, std::uint32_t ringSize,
                   std::uint16_t base);
  // The memory table was replaced: finds the rings of a running queue in the new one.
  QueueFault rebind(const GuestMemory& memory);
  // The base from which a later start() goes on.
  std::uint16_t stop();
  bool running() const { return descriptors != nullptr && broken == QueueFault::NONE; }
  QueueFault fault() const { return broken; }

  // The next chain without taking it: asked again it is read again, and may then be another one.
  Peek peek(const GuestMemory& memory, Chain& chain);
  // Takes the chain that the last peek() gave and tells the driver how many bytes were written into
  // it.
  void complete(const Chain& chain, std::uint32_t written);

  // Whether the driver is to be interrupted for what was completed since the last call.
  bool takeInterrupt();
  // Kicks are a courtesy of the driver's: suppressed while we look anyway, wanted when we stop
  // looking. wantKicks() answers whether chains came in the meantime, for which no kick will come.
  void suppressKicks();
  bool wantKicks();

  // For faults that only the user of a chain can see.
  QueueFault breakWith(QueueFault reason);

 private:
  QueueFault resolve(const GuestMemory& memory);

  Direction direction;
  RingAddresses addresses;
  std::uint8_t* descriptors = nullptr;
  std::uint8_t* available = nullptr;
  std::uint8_t* used = nullptr;
  std::uint16_t size = 0;
  std::uint16_t nextAvailable = 0;
  std::uint16_t nextUsed = 0;
  bool completedSome = false;
  QueueFault broken = QueueFault::NONE;
};

}  // namespace cordon::vsock
