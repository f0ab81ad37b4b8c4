// Bytes on their way to a slow reader: a ring of fixed capacity, allocated when first needed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <sys/uio.h>

namespace cordon::vsock {

class ByteRing {
 public:
  explicit ByteRing(std::size_t bytes) : capacity(bytes) {}

  bool empty() const { return length == 0; }
  std::size_t size() const { return length; }

  // The caller's credit accounting bounds what comes; false, with nothing stored, if that went
  // wrong.
  bool append(std::span<const std::uint8_t> bytes) {
    if (bytes.size() > capacity - length) return false;
    if (bytes.empty()) return true;
    if (!storage) storage = std::make_unique_for_overwrite<std::uint8_t[]>(capacity);
    const std::size_t tail = (head + length) % capacity;
    const std::size_t first = std::min(bytes.size(), capacity - tail);
    std::memcpy(storage.get() + tail, bytes.data(), first);
    std::memcpy(storage.get(), bytes.data() + first, bytes.size() - first);
    length += bytes.size();
    return true;
  }

  // What is stored, in order, in at most two pieces; the second may be empty.
  std::array<iovec, 2> pieces() {
    const std::size_t first = std::min(length, capacity - head);
    return {{{storage.get() + head, first}, {storage.get(), length - first}}};
  }

  void drop(std::size_t bytes) {
    bytes = std::min(bytes, length);
    length -= bytes;
    head = length == 0 ? 0 : (head + bytes) % capacity;
  }

  void release() {
    storage.reset();
    head = length = 0;
  }

 private:
  std::unique_ptr<std::uint8_t[]> storage;
  std::size_t capacity;
  std::size_t head = 0;
  std::size_t length = 0;
};

}  // namespace cordon::vsock
