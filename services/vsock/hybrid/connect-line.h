// The line with which a client of the hybrid socket names the guest's port: "CONNECT <port>\n".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cordon::vsock {

// "CONNECT 4294967294\n" is the longest line there is.
inline constexpr std::size_t MAX_CONNECT_LINE = 19;

// The port of a line without its newline. Exactly one space, decimal digits without sign or leading
// zero, and no port 4294967295, which AF_VSOCK keeps for "any".
std::optional<std::uint32_t> parseConnectLine(std::string_view line);

}  // namespace cordon::vsock
