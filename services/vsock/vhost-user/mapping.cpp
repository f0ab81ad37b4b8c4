#include "services/vsock/vhost-user/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cordon::vsock {
namespace {

constexpr std::uint64_t PAGE_SIZE = 4096;

}  // namespace

std::string_view name(MappingFault fault) {
  switch (fault) {
    case MappingFault::NONE:
      return "none";
    case MappingFault::COUNT:
      return "count";
    case MappingFault::CAN_SHRINK:
      return "can-shrink";
    case MappingFault::SIZE:
      return "size";
    case MappingFault::OVERLAP:
      return "overlap";
    case MappingFault::MMAP:
      return "mmap";
  }
  return "unknown";
}

MappedMemory::~MappedMemory() {
  for (std::size_t i = 0; i < count; ++i) ::munmap(regions[i].host, regions[i].size);
}

MappingFault MappedMemory::map(std::span<const MemoryTableRegion> table, std::span<const Fd> fds,
                               MappedMemory& result) {
  if (table.empty() || table.size() > GuestMemory::MAX_REGIONS || table.size() != fds.size()) {
    return MappingFault::COUNT;
  }
  MappedMemory fresh;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const MemoryTableRegion& wanted = table[i];
    // The seal first: only under it does the size that is read next stay true.
    const int seals = ::fcntl(fds[i].get(), F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return MappingFault::CAN_SHRINK;
    // lseek and not fstat, which is newfstatat in this C library: a call that could name files.
    const off_t end = ::lseek(fds[i].get(), 0, SEEK_END);
    if (end < 0) return MappingFault::SIZE;
    const auto fileSize = static_cast<std::uint64_t>(end);
    if (wanted.size == 0 || wanted.size % PAGE_SIZE != 0 || wanted.mmapOffset % PAGE_SIZE != 0 ||
        wanted.mmapOffset > fileSize || wanted.size > fileSize - wanted.mmapOffset) {
      return MappingFault::SIZE;
    }
    void* where = ::mmap(nullptr, wanted.size, PROT_READ | PROT_WRITE, MAP_SHARED, fds[i].get(),
                         static_cast<off_t>(wanted.mmapOffset));
    if (where == MAP_FAILED) return MappingFault::MMAP;
    fresh.regions[fresh.count++] = {wanted.guestAddress, wanted.size, wanted.frontEndAddress,
                                    static_cast<std::uint8_t*>(where)};
  }
  GuestMemory check;
  if (!check.assign(fresh.view())) return MappingFault::OVERLAP;
  result = std::move(fresh);
  return MappingFault::NONE;
}

}  // namespace cordon::vsock
