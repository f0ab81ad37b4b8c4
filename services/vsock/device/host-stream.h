// The host's end of a connection, as the device sees it: a non-blocking byte stream. The real one
// is a Unix socket (hybrid/socket-stream.h); tests and the fuzz target have their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/uio.h>

namespace cordon::vsock {

struct IoResult {
  enum class Kind : std::uint8_t {
    BYTES,    // `bytes` were moved, at least one
    BLOCKED,  // none now; the owner reports Device::hostEvent() when that changes, and only then
    ENDED,    // reading: the client will send no more
    FAILED,   // the client is gone
  };
  Kind kind = Kind::BLOCKED;
  std::size_t bytes = 0;
};

// Destruction closes it.
class HostStream {
 public:
  HostStream() = default;
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;
  virtual ~HostStream() = default;

  virtual IoResult read(std::span<const iovec> into) = 0;
  virtual IoResult write(std::span<const iovec> from) = 0;
  // The client reads an end of file.
  virtual void shutdownWrite() = 0;
  // The client's writes fail from now on.
  virtual void shutdownRead() = 0;
};

}  // namespace cordon::vsock
