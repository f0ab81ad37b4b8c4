// Guest memory, mapped from the descriptors of a memory table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "services/vsock/device/guest-memory.h"
#include "services/vsock/fd.h"
#include "services/vsock/vhost-user/message.h"

namespace cordon::vsock {

enum class MappingFault : std::uint8_t {
  NONE,
  COUNT,       // no region, too many, or not one descriptor each
  CAN_SHRINK,  // no F_SEAL_SHRINK: truncating the file would make every access to it a SIGBUS
  SIZE,        // empty, not in the file, or not aligned to pages
  OVERLAP,     // regions share addresses or wrap around
  MMAP,
};
std::string_view name(MappingFault fault);

class MappedMemory {
 public:
  MappedMemory() = default;
  MappedMemory(MappedMemory&& other) noexcept { *this = std::move(other); }
  MappedMemory& operator=(MappedMemory&& other) noexcept {
    std::swap(regions, other.regions);
    std::swap(count, other.count);
    return *this;
  }
  ~MappedMemory();

  // Maps all or nothing. The descriptors are not needed after that.
  static MappingFault map(std::span<const MemoryTableRegion> table, std::span<const Fd> fds,
                          MappedMemory& result);
  std::span<const MemoryRegion> view() const { return {regions.data(), count}; }

 private:
  std::array<MemoryRegion, GuestMemory::MAX_REGIONS> regions{};
  std::size_t count = 0;
};

}  // namespace cordon::vsock
