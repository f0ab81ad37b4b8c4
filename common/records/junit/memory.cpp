#include "common/records/junit/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <sys/mman.h>

namespace cordon::records {

namespace {

thread_local MemoryBudget* current = nullptr;

// Stands in front of each block, so that a free can be counted.
struct alignas(std::max_align_t) Header {
  std::size_t size;  // with the header
  MemoryBudget* budget;
};

// malloc keeps what was freed below a block that lives, and learns to do so with larger and larger
// ones: what a document's longest token took would stay resident. So large blocks are mappings.
constexpr std::size_t MAPPED_FROM = 128 << 10;

void* obtain(std::size_t size) {
  if (size < MAPPED_FROM) return std::malloc(size);
  void* pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

void release(void* block, std::size_t size) {
  if (size < MAPPED_FROM) {
    std::free(block);
  } else {
    munmap(block, size);
  }
}

void* resize(void* block, std::size_t size, std::size_t wanted) {
  if (size < MAPPED_FROM && wanted < MAPPED_FROM) return std::realloc(block, wanted);
  if (size >= MAPPED_FROM && wanted >= MAPPED_FROM) {
    void* pages = mremap(block, size, wanted, MREMAP_MAYMOVE);
    return pages == MAP_FAILED ? nullptr : pages;
  }
  void* fresh = obtain(wanted);
  if (fresh == nullptr) return nullptr;
  std::memcpy(fresh, block, std::min(size, wanted));
  release(block, size);
  return fresh;
}

Header* headerOf(void* memory) {
  return static_cast<Header*>(memory) - 1;
}

void* allocate(std::size_t bytes) {
  if (current == nullptr || bytes > std::numeric_limits<std::size_t>::max() - sizeof(Header)) {
    return nullptr;
  }
  const std::size_t size = bytes + sizeof(Header);
  if (!current->take(size)) return nullptr;
  void* block = obtain(size);
  if (block == nullptr) {
    current->give(size);
    return nullptr;
  }
  return new (block) Header{size, current} + 1;
}

void deallocate(void* memory) {
  if (memory == nullptr) return;
  Header* header = headerOf(memory);
  const std::size_t size = header->size;
  header->budget->give(size);
  release(header, size);
}

void* reallocate(void* memory, std::size_t bytes) {
  if (memory == nullptr) return allocate(bytes);
  if (bytes > std::numeric_limits<std::size_t>::max() - sizeof(Header)) return nullptr;
  Header* header = headerOf(memory);
  MemoryBudget& budget = *header->budget;
  const std::size_t size = header->size;
  const std::size_t wanted = bytes + sizeof(Header);
  if (wanted > size && !budget.take(wanted - size)) return nullptr;
  void* block = resize(header, size, wanted);
  if (block == nullptr) {
    if (wanted > size) budget.give(wanted - size);
    return nullptr;
  }
  if (wanted < size) budget.give(size - wanted);
  header = static_cast<Header*>(block);
  header->size = wanted;
  return header + 1;
}

}  // namespace

bool MemoryBudget::take(std::size_t bytes) {
  if (bytes > most - taken) return false;
  taken += bytes;
  highest = std::max(highest, taken);
  return true;
}

BudgetScope::BudgetScope(MemoryBudget& budget) : outer(current) {
  current = &budget;
}
BudgetScope::~BudgetScope() {
  current = outer;
}

const XML_Memory_Handling_Suite& budgetedAllocator() {
  static const XML_Memory_Handling_Suite SUITE{allocate, reallocate, deallocate};
  return SUITE;
}

}  // namespace cordon::records
