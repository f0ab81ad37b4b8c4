// The host's end of a connection without a socket.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "services/vsock/device/host-stream.h"

namespace cordon::vsock::testing {

struct FakeClient {
  std::string sends;            // not read by the device yet
  std::uint64_t sendsMore = 0;  // further bytes, which nobody looks at
  bool ended = false;           // after that: end of file, else nothing for now
  bool gone = false;            // after that: an error
  std::string received;
  std::uint64_t receivedBytes = 0;
  bool keeps = true;            // what it receives
  std::size_t room = SIZE_MAX;  // bytes it still takes
  bool readEnded = false;       // shutdownRead()
  bool writeEnded = false;      // shutdownWrite()
  bool closed = false;
};

class FakeStream final : public HostStream {
 public:
  explicit FakeStream(std::shared_ptr<FakeClient> the) : client(std::move(the)) {}
  FakeStream(const FakeStream&) = delete;
  ~FakeStream() override { client->closed = true; }

  IoResult read(std::span<const iovec> into) override {
    std::size_t moved = 0;
    for (const iovec& piece : into) {
      const std::size_t take = std::min(piece.iov_len, client->sends.size());
      std::memcpy(piece.iov_base, client->sends.data(), take);
      client->sends.erase(0, take);
      const std::uint64_t more = std::min<std::uint64_t>(piece.iov_len - take, client->sendsMore);
      client->sendsMore -= more;
      moved += take + more;
    }
    if (moved > 0) return {IoResult::Kind::BYTES, moved};
    if (client->gone) return {IoResult::Kind::FAILED, 0};
    return {client->ended ? IoResult::Kind::ENDED : IoResult::Kind::BLOCKED, 0};
  }
  IoResult write(std::span<const iovec> from) override {
    if (client->gone) return {IoResult::Kind::FAILED, 0};
    std::size_t moved = 0;
    for (const iovec& piece : from) {
      const std::size_t take = std::min(piece.iov_len, client->room);
      if (client->keeps) client->received.append(static_cast<const char*>(piece.iov_base), take);
      client->room -= client->room == SIZE_MAX ? 0 : take;
      moved += take;
    }
    client->receivedBytes += moved;
    if (moved == 0) return {IoResult::Kind::BLOCKED, 0};
    return {IoResult::Kind::BYTES, moved};
  }
  void shutdownWrite() override { client->writeEnded = true; }
  void shutdownRead() override { client->readEnded = true; }

 private:
  std::shared_ptr<FakeClient> client;
};

}  // namespace cordon::vsock::testing
