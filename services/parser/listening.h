// The socket that the parser serves on, opened before the sandbox is entered: afterwards nothing
// can be.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include <kj/io.h>

#include "services/parser/options.h"

namespace cordon::parser {

enum class ListenError : std::uint8_t {
  LIVE_SOCKET,  // somebody serves at this path, or holds its lock
  NO_SOCKET,    // what stands at the path is no socket
  // The descriptor is not open, not a Unix stream socket, not listening (fd:), or listening
  // (--rpc-fd).
  WRONG_SOCKET,
  SYSTEM,  // a system call failed
};

struct ListenFailure {
  ListenError error = ListenError::SYSTEM;
  const char* step = "";
  int errnoValue = 0;
};
std::string describe(const ListenFailure& failure);

struct Endpoint {
  kj::AutoCloseFd socket;  // non-blocking, close-on-exec
  kj::AutoCloseFd lock;    // of a socket at a path: held as long as it serves
  bool isListener = true;
};

// A socket that a dead parser left at a path is replaced, one that is served never: <path>.lock
// tells them apart, and a connect proves it where the other side does not know of the lock.
std::variant<Endpoint, ListenFailure> openEndpoint(const Listening& listening);

}  // namespace cordon::parser
