#include "services/cli/read/file.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

namespace cordon::cli {
namespace {

using records::Reason;
using records::Status;

Unread failed(int error) {
  if (error == ENOENT || error == ENOTDIR) return {Status::MISSING, Reason::NONE, error};
  return {Status::REFUSED, Reason::NOT_READABLE, error};
}

}  // namespace

std::variant<kj::AutoCloseFd, Unread> openFile(const std::string& path) {
  // As a mere place first: what it is must be known before it is opened.
  const int place = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (place < 0) return failed(errno);
  const kj::AutoCloseFd held(place);
  struct stat status {};
  if (::fstat(held, &status) != 0) return failed(errno);
  if (!S_ISREG(status.st_mode)) return Unread{Status::REFUSED, Reason::NOT_REGULAR, 0};
  // The same file, whatever its name leads to by now.
  const std::string same = "/proc/self/fd/" + std::to_string(held.get());
  const int fd = ::open(same.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return Unread{Status::REFUSED, Reason::NOT_READABLE, errno};
  return kj::AutoCloseFd(fd);
}

}  // namespace cordon::cli
