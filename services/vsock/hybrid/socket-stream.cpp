#include "services/vsock/hybrid/socket-stream.h"

#include <cerrno>
#include <sys/socket.h>

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

IoResult SocketStream::read(std::span<const iovec> into) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(into.data());
  message.msg_iovlen = into.size();
  ssize_t got;
  do {
    // No control buffer: descriptors that a client attaches never reach this process.
    got = ::recvmsg(fd.get(), &message, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  return resultOf(got);
}

IoResult SocketStream::write(std::span<const iovec> from) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(from.data());
  message.msg_iovlen = from.size();
  ssize_t sent;
  do {
    sent = ::sendmsg(fd.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
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
