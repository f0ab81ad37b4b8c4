// Dials the hybrid Unix socket of one guest: connect, peer check, CONNECT. Sources: realization.md
// 13 and 14, channel.md §14.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/types.h>

#include <kj/async-io.h>
#include <kj/timer.h>

#include "common/channel/limits.h"
#include "services/parser/transport.h"

namespace cordon::parser {

inline constexpr unsigned DIAL_ATTEMPTS = 5;
inline constexpr kj::Duration DIAL_BACKOFF =
    50 * kj::MILLISECONDS;                                       // × attempt, after a failed dial
inline constexpr kj::Duration DIAL_PACE = 2 * kj::MILLISECONDS;  // between dials of one transport
inline constexpr kj::Duration HANDSHAKE_DEADLINE =
    10 * kj::SECONDS;                             // of one dial; over it, the dial failed
inline constexpr std::size_t MAX_HANDSHAKE = 32;  // bytes of reply
inline constexpr uid_t UNMAPPED_UID = 65534;

struct HybridAddress {
  std::string path;  // as given to connect(2): <sockets directory>/<cid>/vsock.sock
  uid_t uid = 0;     // SO_PEERCRED must equal it before the first byte is sent
  std::uint32_t port = channel::VSOCK_PORT;
};
// False for a path that is empty, holds NUL or does not fit sun_path, for uid 65534 (an unmapped
// uid shows as that), for uid 0 unless allowed, and for port 0 or 2^32-1.
bool isDialable(const HybridAddress& address, bool allowRootPeer);
std::string hybridPath(std::string_view socketsDirectory, std::uint32_t cid);

class HybridTransport final : public Transport {
 public:
  // The address must be dialable.
  HybridTransport(kj::LowLevelAsyncIoProvider& provider, kj::Timer& timer, HybridAddress address,
                  bool allowRootPeer = false);
  ~HybridTransport() noexcept(false) override;
  KJ_DISALLOW_COPY(HybridTransport);

  // A wrong peer is PEER_MISMATCH at once and, without a dial, ever after. EOF, a reset or silence
  // before the OK is a failed dial; anything but "OK <1..2^32-1>\n" is HANDSHAKE. Reads no byte
  // behind that line.
  kj::Promise<Connection> connect() override;

 private:
  struct Impl;
  kj::Own<Impl> impl;
};

}  // namespace cordon::parser
