#include "services/guest/spool.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace cordon::guest {
namespace {

constexpr std::size_t FIRST_CAPACITY = 1024;

Fd unnamedFileIn(const char* directory) {
  Fd file(::open(directory, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600));
  if (file.valid()) return file;
  // Not every file system makes files without a name; the name is unguessable, exclusive and gone
  // at once.
  std::string path = std::string(directory) + "/.cordon-guest-XXXXXX";
  Fd named(::mkostemp(path.data(), O_CLOEXEC));
  if (named.valid()) ::unlink(path.c_str());
  return named;
}

}  // namespace

int Spool::append(std::span<const std::byte> bytes) {
  if (failure != 0 || bytes.empty()) return failure;
  if (!file.valid() && !fileImpossible && length + bytes.size() > memoryLimit) {
    failure = moveToFile();
    if (failure != 0) return failure;
  }
  failure = file.valid() ? write(bytes) : grow(static_cast<std::size_t>(length) + bytes.size());
  if (failure != 0) return failure;
  if (!file.valid()) std::memcpy(memory.get() + length, bytes.data(), bytes.size());
  length += bytes.size();
  return 0;
}

int Spool::grow(std::size_t wanted) {
  if (wanted <= capacity) return 0;
  std::size_t next = std::max({wanted, capacity * 2, FIRST_CAPACITY});
  void* moved = std::realloc(memory.get(), next);
  if (moved == nullptr) return ENOMEM;
  (void)memory.release();
  memory.reset(static_cast<std::byte*>(moved));
  capacity = next;
  return 0;
}

void Spool::shrink() {
  if (!memory || capacity == length || length == 0) return;
  void* moved = std::realloc(memory.get(), static_cast<std::size_t>(length));
  if (moved == nullptr) return;
  (void)memory.release();
  memory.reset(static_cast<std::byte*>(moved));
  capacity = static_cast<std::size_t>(length);
}

int Spool::moveToFile() {
  for (const char* directory : {"/var/tmp", "/tmp"}) {
    file = unnamedFileIn(directory);
    if (file.valid()) break;
  }
  if (!file.valid()) {
    fileImpossible = true;
    return 0;
  }
  std::uint64_t kept = std::exchange(length, 0);
  int error = write({memory.get(), static_cast<std::size_t>(kept)});
  length = kept;
  memory.reset();
  capacity = 0;
  return error;
}

int Spool::write(std::span<const std::byte> bytes) {
  std::uint64_t at = length;
  while (!bytes.empty()) {
    ssize_t count = ::pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (count < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (count == 0) return ENOSPC;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    at += static_cast<std::uint64_t>(count);
  }
  return 0;
}

std::ptrdiff_t Spool::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset >= length) return 0;
  std::size_t count =
      static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), length - offset));
  if (!file.valid()) {
    std::memcpy(out.data(), memory.get() + offset, count);
    return static_cast<std::ptrdiff_t>(count);
  }
  for (;;) {
    ssize_t got = ::pread(file.get(), out.data(), count, static_cast<off_t>(offset));
    if (got > 0) return got;
    // The file is ours alone: an early end is a fault of the file system.
    if (got == 0) return -EIO;
    if (errno != EINTR) return -errno;
  }
}

}  // namespace cordon::guest
