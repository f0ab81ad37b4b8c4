#include "services/vsock/hybrid/connect-line.h"

#include <charconv>
#include <system_error>

namespace cordon::vsock {

std::optional<std::uint32_t> parseConnectLine(std::string_view line) {
  constexpr std::string_view VERB = "CONNECT ";
  constexpr std::uint32_t ANY_PORT = UINT32_MAX;
  if (!line.starts_with(VERB)) return std::nullopt;
  line.remove_prefix(VERB.size());
  if (line.empty() || (line.front() == '0' && line.size() > 1)) return std::nullopt;
  std::uint32_t port = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), port);
  if (error != std::errc{} || end != line.data() + line.size() || port == ANY_PORT)
    return std::nullopt;
  return port;
}

}  // namespace cordon::vsock
