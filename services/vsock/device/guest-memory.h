// The guest's memory as the front end shared it: a handful of mapped regions and the two address
// spaces in which the other side names them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cordon::vsock {

struct MemoryRegion {
  std::uint64_t guestAddress = 0;  // where the guest sees it
  std::uint64_t size = 0;          // bytes, not 0
  std::uint64_t frontEndAddress =
      0;  // where the front end has it mapped: ring addresses are given in this space
  std::uint8_t* host =
      nullptr;  // where this process has it mapped; outlives the GuestMemory that names it
};

// Every byte behind a span from here may change at any time: read it once, into memory of our own,
// then judge it.
class GuestMemory {
 public:
  // A front end without CONFIGURE_MEM_SLOTS sends at most eight (vhost-user specification,
  // SET_MEM_TABLE).
  static constexpr std::size_t MAX_REGIONS = 8;

  // Replaces all regions. False, and nothing is mapped any more, if there are too many, one is
  // empty or wraps around the end of an address space, or two overlap in either space.
  bool assign(std::span<const MemoryRegion> regions);
  void clear() { count = 0; }
  bool empty() const { return count == 0; }

  // The part of [guestAddress, +length) that lies in the region which holds guestAddress: at most
  // `length` bytes, and none if no region holds the address. A buffer that crosses into an adjacent
  // region is had by asking again.
  std::span<std::uint8_t> at(std::uint64_t guestAddress, std::uint64_t length) const;

  // All of [frontEndAddress, +length) within one region, or nullptr.
  std::uint8_t* wholeAtFrontEnd(std::uint64_t frontEndAddress, std::uint64_t length) const;

 private:
  std::array<MemoryRegion, MAX_REGIONS> regions{};
  std::size_t count = 0;
};

}  // namespace cordon::vsock
