#include "services/vsock/hybrid/socket-stream.h"

#include <cerrno>
#include <sys/socket.h>
#include <sys/uio.h>

namespace cordon::vsock {
namespace {

IoResult resultOf(ssize_t moved) {
  if (moved > 0) return {IoResult::Kind::BYTES, static_cast<std::size_t>(moved)};
  if (moved == 0) return {IoResult::Kind::ENDED, 0};
  // EAGAIN and EWOULDBLOCK are one on Linux. Everything else (ECONNRESET, EPIPE, …) means that the
  // client is gone.
  return {errno == EAGAIN ? IoResult::Kind::BLOCKED : IoResult::Kind::FAILED, 0};
}

}  // namespace

// readv and writev, not recvmsg and sendmsg: a process that was taken over could send descriptors
// with the latter, the guest's memory first of all. SIGPIPE is ignored.
IoResult SocketStream::read(std::span<const iovec> into) {
  ssize_t got;
  do {
    got = ::readv(fd.get(), into.data(), static_cast<int>(into.size()));
  } while (got < 0 && errno == EINTR);
  return resultOf(got);
}

IoResult SocketStream::write(std::span<const iovec> from) {
  ssize_t sent;
  do {
    sent = ::writev(fd.get(), from.data(), static_cast<int>(from.size()));
  } while (sent < 0 && errno == EINTR);
  return resultOf(sent);
}

void SocketStream::shutdownWrite() {
  ::shutdown(fd.get(), SHUT_WR);
}
void SocketStream::shutdownRead() {
  ::shutdown(fd.get(), SHUT_RD);
}

}  // namespace cordon::vsock
