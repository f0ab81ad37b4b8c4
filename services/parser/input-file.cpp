#include "services/parser/input-file.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cordon::parser {

std::string describe(FileRefusal refusal) {
  switch (refusal) {
    case FileRefusal::NOT_OPEN:
      return "not-open";
    case FileRefusal::NOT_REGULAR:
      return "not-regular";
    case FileRefusal::NOT_READABLE:
      return "not-readable";
    case FileRefusal::WRITABLE:
      return "writable";
    case FileRefusal::SYSTEM:
      break;
  }
  return "system";
}

std::variant<InputFile, FileRefusal> InputFile::take(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return errno == EBADF ? FileRefusal::NOT_OPEN : FileRefusal::SYSTEM;
  }
  kj::AutoCloseFd file(fd);
  if (!S_ISREG(status.st_mode)) return FileRefusal::NOT_REGULAR;
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return FileRefusal::SYSTEM;
  if ((flags & O_PATH) != 0 || (flags & O_ACCMODE) == O_WRONLY) return FileRefusal::NOT_READABLE;
  if ((flags & O_ACCMODE) != O_RDONLY) return FileRefusal::WRITABLE;
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return FileRefusal::SYSTEM;
  return InputFile(kj::mv(file));
}

std::optional<std::size_t> InputFile::read(std::span<std::byte> buffer) {
  ssize_t size = 0;
  do {
    size = ::pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(offset));
  } while (size < 0 && errno == EINTR);
  if (size < 0) return std::nullopt;
  offset += static_cast<std::uint64_t>(size);
  return static_cast<std::size_t>(size);
}

}  // namespace cordon::parser
