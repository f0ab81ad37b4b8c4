// The command line of cordon-guest.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "services/guest/listener.h"

namespace cordon::guest {

struct Options {
  ListenAddress listen = VsockAddress{5000};
  std::int64_t idleTimeoutMs = 60'000;
  bool version = false;
};

// The options, or what is wrong with the arguments (without the program's name). Each option takes
// its value behind "=" or as the next argument, with one dash or two.
std::variant<Options, std::string> parseOptions(std::span<char* const> arguments);

inline constexpr const char* USAGE =
    "usage: cordon-guest [--port N | --listen unix:PATH] [--idle-timeout-ms N] [--version]\n"
    "  --port N              vsock port to serve the host on (5000)\n"
    "  --listen unix:PATH    serve a Unix socket instead: peers of uid 0 or the agent's own\n"
    "  --idle-timeout-ms N   how long a peer may be silent (60000)\n"
    "  --version             print version and protocol, and exit\n";

}  // namespace cordon::guest
