// How a guest is reached: one fresh byte stream an exchange. Source: channel.md §1 and §14. A
// caller cannot tell one transport from another.
#pragma once

#include <variant>

#include <kj/async-io.h>

#include "services/parser/outcome.h"

namespace cordon::parser {

// Every dial failed: nothing of the request left the host.
struct Unreachable {
  bool operator==(const Unreachable&) const = default;
};

class Transport {
 public:
  // A stream to the guest's agent; or PEER_MISMATCH or HANDSHAKE as Tamper.
  using Connection = std::variant<kj::Own<kj::AsyncIoStream>, Unreachable, Tamper>;

  virtual ~Transport() noexcept(false) = default;
  // Dropping the promise closes what was being dialled; dropping the stream closes the connection
  // in both directions.
  virtual kj::Promise<Connection> connect() = 0;
};

}  // namespace cordon::parser
