// Reads vhost-user messages and their descriptors from a stream socket, without ever blocking or
// trusting a length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "services/vsock/fd.h"
#include "services/vsock/vhost-user/message.h"

namespace cordon::vsock {

enum class ChannelFault : std::uint8_t {
  NONE,
  CLOSED,           // at a message boundary: the front end went
  TRUNCATED,        // inside a message
  SOCKET,           // errno
  VERSION,          // or flags that mean nothing, or a reply where requests are expected
  SIZE,             // a payload over MAX_MESSAGE_SIZE
  TOO_MANY_FDS,     // more descriptors than any message has
  FDS_LOST,         // MSG_CTRUNC: the kernel threw descriptors away
  FOREIGN_CONTROL,  // control data that is no SCM_RIGHTS
};
std::string_view name(ChannelFault fault);

struct Message {
  MessageHeader header{};
  std::array<std::uint8_t, MAX_MESSAGE_SIZE> payload;  // the first header.size bytes are set
  std::vector<Fd> fds;

  std::span<const std::uint8_t> bytes() const { return {payload.data(), header.size}; }
};

class VhostUserChannel {
 public:
  enum class Read : std::uint8_t { MESSAGE, WAIT, ENDED };

  // A non-blocking socket; it stays the caller's.
  explicit VhostUserChannel(int socket) : fd(socket) {}

  // ENDED: fault() says why; every descriptor received is closed. The message is valid until the
  // next call.
  Read read();
  Message& message() { return current; }
  ChannelFault fault() const { return reason; }

  // A reply to `request`. False if the front end does not take it at once: it reads each reply
  // before it asks again.
  bool reply(std::uint32_t request, std::span<const std::uint8_t> payload);

 private:
  Read end(ChannelFault why);

  int fd;
  Message current;
  std::size_t have = 0;  // bytes of header and payload
  bool complete = false;
  ChannelFault reason = ChannelFault::NONE;
};

}  // namespace cordon::vsock
