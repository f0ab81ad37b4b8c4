#include "services/vsock/device/guest-memory.h"

#include <algorithm>
#include <limits>

namespace cordon::vsock {
namespace {

bool wraps(std::uint64_t start, std::uint64_t size) {
  return size > std::numeric_limits<std::uint64_t>::max() - start;
}

bool overlap(std::uint64_t a, std::uint64_t b, std::uint64_t aSize, std::uint64_t bSize) {
  return a < b ? b - a < aSize : a - b < bSize;
}

}  // namespace

bool GuestMemory::assign(std::span<const MemoryRegion> wanted) {
  count = 0;
  if (wanted.size() > MAX_REGIONS) return false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const MemoryRegion& one = wanted[i];
    if (one.size == 0 || one.host == nullptr || wraps(one.guestAddress, one.size) ||
        wraps(one.frontEndAddress, one.size)) {
      return false;
    }
    for (std::size_t j = 0; j < i; ++j) {
      const MemoryRegion& other = wanted[j];
      if (overlap(one.guestAddress, other.guestAddress, one.size, other.size) ||
          overlap(one.frontEndAddress, other.frontEndAddress, one.size, other.size)) {
        return false;
      }
    }
  }
  std::copy(wanted.begin(), wanted.end(), regions.begin());
  count = wanted.size();
  return true;
}

std::span<std::uint8_t> GuestMemory::at(std::uint64_t guestAddress, std::uint64_t length) const {
  for (std::size_t i = 0; i < count; ++i) {
    const MemoryRegion& region = regions[i];
    if (guestAddress < region.guestAddress) continue;
    const std::uint64_t offset = guestAddress - region.guestAddress;
    if (offset >= region.size) continue;
    return {region.host + offset, static_cast<std::size_t>(std::min(length, region.size - offset))};
  }
  return {};
}

std::uint8_t* GuestMemory::wholeAtFrontEnd(std::uint64_t frontEndAddress,
                                           std::uint64_t length) const {
  for (std::size_t i = 0; i < count; ++i) {
    const MemoryRegion& region = regions[i];
    if (frontEndAddress < region.frontEndAddress) continue;
    const std::uint64_t offset = frontEndAddress - region.frontEndAddress;
    if (offset >= region.size) continue;
    return length <= region.size - offset ? region.host + offset : nullptr;
  }
  return nullptr;
}

}  // namespace cordon::vsock
