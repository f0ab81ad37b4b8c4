// A client's Unix socket as a HostStream.
#pragma once

#include "services/vsock/device/host-stream.h"
#include "services/vsock/fd.h"

namespace cordon::vsock {

class SocketStream final : public HostStream {
 public:
  // A non-blocking stream socket.
  explicit SocketStream(Fd socket) : fd(std::move(socket)) {}

  IoResult read(std::span<const iovec> into) override;
  IoResult write(std::span<const iovec> from) override;
  void shutdownWrite() override;
  void shutdownRead() override;
  int descriptor() const { return fd.get(); }

 private:
  Fd fd;
};

}  // namespace cordon::vsock
