// Bytes that are kept: the bulk of a request until it is verified, and the bulk of a reply until it
// is acknowledged.
//
// Up to a limit they stay in memory; beyond it they go to a file without a name, in /var/tmp or
// /tmp, so that a large upload neither grows the agent nor can be found, or filled in, by anyone in
// the guest. Where no such file can be made they stay in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <span>

#include "services/guest/fd.h"

namespace cordon::guest {

class Spool {
 public:
  static constexpr std::size_t IN_MEMORY = std::numeric_limits<std::size_t>::max();

  // inMemory: bytes held in memory at most; IN_MEMORY for no limit.
  explicit Spool(std::size_t inMemory) : memoryLimit(inMemory) {}

  // Keeps `bytes`. 0, or the errno of the first failure; after one, further bytes are dropped and
  // the errno stands.
  int append(std::span<const std::byte> bytes);
  // Gives back memory that was reserved for growth.
  void shrink();

  // Copies from `offset` on into `out`: the count (0 at the end), or minus an errno.
  std::ptrdiff_t read(std::uint64_t offset, std::span<std::byte> out) const;

  [[nodiscard]] std::uint64_t size() const { return length; }
  [[nodiscard]] int error() const { return failure; }
  [[nodiscard]] bool onDisk() const { return file.valid(); }

 private:
  struct Free {
    void operator()(std::byte* block) const { std::free(block); }
  };

  int grow(std::size_t wanted);
  int moveToFile();
  int write(std::span<const std::byte> bytes);

  std::size_t memoryLimit;
  // malloc and realloc, not a vector: a large block grows by moving pages instead of copying bytes,
  // and what is reserved beyond the length is never touched.
  std::unique_ptr<std::byte, Free> memory;
  std::size_t capacity = 0;
  std::uint64_t length = 0;
  Fd file;
  bool fileImpossible = false;
  int failure = 0;
};

}  // namespace cordon::guest
