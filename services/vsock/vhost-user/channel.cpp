#include "services/vsock/vhost-user/channel.h"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace cordon::vsock {

std::string_view name(ChannelFault fault) {
  switch (fault) {
    case ChannelFault::NONE:
      return "none";
    case ChannelFault::CLOSED:
      return "closed";
    case ChannelFault::TRUNCATED:
      return "truncated";
    case ChannelFault::SOCKET:
      return "socket";
    case ChannelFault::VERSION:
      return "version";
    case ChannelFault::SIZE:
      return "size";
    case ChannelFault::TOO_MANY_FDS:
      return "too-many-fds";
    case ChannelFault::FDS_LOST:
      return "fds-lost";
    case ChannelFault::FOREIGN_CONTROL:
      return "foreign-control";
  }
  return "unknown";
}

VhostUserChannel::Read VhostUserChannel::end(ChannelFault why) {
  reason = why;
  current.fds.clear();
  return Read::ENDED;
}

VhostUserChannel::Read VhostUserChannel::read() {
  if (reason != ChannelFault::NONE) return Read::ENDED;
  if (complete) {
    complete = false;
    have = 0;
    current.fds.clear();
  }
  for (;;) {
    // Never past the end of this message: descriptors belong to the message whose bytes they came
    // with.
    std::uint8_t* into;
    std::size_t want;
    if (have < sizeof(MessageHeader)) {
      into = reinterpret_cast<std::uint8_t*>(&current.header) + have;
      want = sizeof(MessageHeader) - have;
    } else {
      into = current.payload.data() + (have - sizeof(MessageHeader));
      want = sizeof(MessageHeader) + current.header.size - have;
    }

    iovec piece{into, want};
    // Room for one more than any message has, so that one too many is seen as such.
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * (MAX_MESSAGE_FDS + 1))> control;
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return Read::WAIT;
      return end(errno == ECONNRESET ? ChannelFault::CLOSED : ChannelFault::SOCKET);
    }
    bool foreign = false;
    for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr;
         each = CMSG_NXTHDR(&header, each)) {
      if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) {
        foreign = true;
        continue;
      }
      const std::size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int number;
        std::memcpy(&number, CMSG_DATA(each) + i * sizeof(int), sizeof(int));
        current.fds.emplace_back(number);
      }
    }
    if ((header.msg_flags & MSG_CTRUNC) != 0) return end(ChannelFault::FDS_LOST);
    if (foreign) return end(ChannelFault::FOREIGN_CONTROL);
    if (current.fds.size() > MAX_MESSAGE_FDS) return end(ChannelFault::TOO_MANY_FDS);
    if (got == 0) return end(have == 0 ? ChannelFault::CLOSED : ChannelFault::TRUNCATED);

    have += static_cast<std::size_t>(got);
    if (have < sizeof(MessageHeader)) continue;
    if (have == sizeof(MessageHeader)) {
      if ((current.header.flags & PROTOCOL_VERSION_MASK) != PROTOCOL_VERSION ||
          (current.header.flags & ~KNOWN_FLAGS) != 0 || (current.header.flags & FLAG_REPLY) != 0) {
        return end(ChannelFault::VERSION);
      }
      if (current.header.size > MAX_MESSAGE_SIZE) return end(ChannelFault::SIZE);
    }
    if (have == sizeof(MessageHeader) + current.header.size) {
      complete = true;
      return Read::MESSAGE;
    }
  }
}

bool VhostUserChannel::reply(std::uint32_t request, std::span<const std::uint8_t> payload) {
  MessageHeader header{request, PROTOCOL_VERSION | FLAG_REPLY,
                       static_cast<std::uint32_t>(payload.size())};
  std::array<iovec, 2> pieces{
      {{&header, sizeof(header)}, {const_cast<std::uint8_t*>(payload.data()), payload.size()}}};
  ssize_t sent;
  do {
    sent = ::writev(fd, pieces.data(), static_cast<int>(pieces.size()));
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof(header) + payload.size());
}

}  // namespace cordon::vsock
