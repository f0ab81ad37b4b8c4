// Accepts the host's connections, and keeps accepting whatever happens. Source:
// protocols/channel.md §15.1.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>

#include "services/guest/diag-ring.h"
#include "services/guest/fd.h"

namespace cordon::guest {

struct VsockAddress {
  std::uint32_t port;
};
struct UnixAddress {
  std::string path;
};
// Vsock: any CID of this guest, peers of CID 2 only. Unix: peers of uid 0 or the agent's own.
using ListenAddress = std::variant<VsockAddress, UnixAddress>;

class Listener {
 public:
  using Submit = std::function<void(Fd)>;

  Listener(ListenAddress where, DiagRing& ring, Submit accepted);

  // Listens, accepts, and listens anew when accepting keeps failing; forever.
  [[noreturn]] void run();

 private:
  Fd listen();
  void acceptUntilBroken(const Fd& listening);
  [[nodiscard]] bool trusted(const Fd& connection) const;
  [[nodiscard]] std::string describe() const;

  ListenAddress address;
  DiagRing& diag;
  Submit submit;
};

}  // namespace cordon::guest
