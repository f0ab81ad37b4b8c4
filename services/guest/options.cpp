#include "services/guest/options.h"

#include <charconv>
#include <optional>
#include <string_view>

#include <climits>

namespace cordon::guest {
namespace {

std::optional<std::int64_t> numberIn(std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (number < low || number > high) return std::nullopt;
  return number;
}

// Empty, or what is wrong.
std::string apply(Options& options, std::string_view name, std::string_view value) {
  if (name == "port") {
    auto port = numberIn(value, 1, UINT32_MAX - 1);
    if (!port) return "--port takes a number from 1";
    options.listen = VsockAddress{static_cast<std::uint32_t>(*port)};
    return {};
  }
  if (name == "idle-timeout-ms") {
    auto idle = numberIn(value, 1, INT_MAX);
    if (!idle) return "--idle-timeout-ms takes a number from 1";
    options.idleTimeoutMs = *idle;
    return {};
  }
  constexpr std::string_view UNIX = "unix:";
  if (!value.starts_with(UNIX) || value.size() == UNIX.size()) return "--listen takes unix:PATH";
  options.listen = UnixAddress{std::string(value.substr(UNIX.size()))};
  return {};
}

}  // namespace

std::variant<Options, std::string> parseOptions(std::span<char* const> arguments) {
  Options options;
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    std::string_view argument = arguments[at];
    std::string_view name = argument;
    if (name.starts_with('-')) name.remove_prefix(name.starts_with("--") ? 2 : 1);
    std::size_t equals = name.find('=');
    std::optional<std::string_view> value;
    if (equals != std::string_view::npos) {
      value = name.substr(equals + 1);
      name = name.substr(0, equals);
    }
    if (!argument.starts_with('-')) return "unexpected argument " + std::string(argument);
    if (name == "version" && !value) {
      options.version = true;
      continue;
    }
    if (name != "port" && name != "listen" && name != "idle-timeout-ms") {
      return "unknown option " + std::string(argument);
    }
    if (!value) {
      if (at + 1 == arguments.size()) return std::string(argument) + " needs a value";
      value = arguments[++at];
    }
    if (std::string wrong = apply(options, name, *value); !wrong.empty()) return wrong;
  }
  return options;
}

}  // namespace cordon::guest
