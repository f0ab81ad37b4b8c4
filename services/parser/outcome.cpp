#include "services/parser/outcome.h"

#include <array>

namespace cordon::parser {
namespace {

template <std::size_t N, typename Enum>
std::string_view pick(const std::array<std::string_view, N>& names, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? names.at(index) : std::string_view("?");
}

template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <typename... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

std::string_view layerName(channel::BudgetLayer layer) {
  static constexpr std::array<std::string_view, 4> NAMES{"command", "channel", "untimed",
                                                         "transport"};
  return pick(NAMES, layer);
}

}  // namespace

std::string_view name(TamperClass value) {
  static constexpr std::array<std::string_view, 12> NAMES{
      "frame-too-large", "protocol-violation", "invalid-message", "bulk-overrun",
      "bulk-mismatch",   "wrong-id",           "wrong-kind",      "trailing-data",
      "peer-mismatch",   "handshake",          "foreign-layer",   "replay-differs"};
  return pick(NAMES, value);
}

std::string_view name(LossClass value) {
  static constexpr std::array<std::string_view, 5> NAMES{"unreachable", "reply-lost", "stale",
                                                         "unknown-id", "uncertified"};
  return pick(NAMES, value);
}

std::string_view name(ArgumentError value) {
  static constexpr std::array<std::string_view, 9> NAMES{
      "bad-id",         "bad-text", "bad-budget", "bad-address", "request-too-large",
      "bulk-too-large", "bad-mode", "too-many",   "bad-window"};
  return pick(NAMES, value);
}

std::string_view name(StreamError value) {
  static constexpr std::array<std::string_view, 3> NAMES{"source-short", "source-changed",
                                                         "failed"};
  return pick(NAMES, value);
}

std::string describe(const Failure& failure) {
  const auto join = [](std::string_view word, std::string_view detail) {
    return std::string(word).append(" ").append(detail);
  };
  return std::visit(
      Overloaded{
          [&](const Tamper& value) { return join("tamper", name(value.type)); },
          [&](const LossClass& value) { return join("loss", name(value)); },
          [&](const BudgetFailure& value) { return join("budget", layerName(value.layer)); },
          [&](const GuestError& value) { return join("guest", value.errnoName); },
          [&](const FileLimit& value) { return join("file-limit", std::to_string(value.written)); },
          [&](const SessionChange&) { return std::string("session-changed"); },
          [&](const ArgumentError& value) { return join("argument", name(value)); },
          [&](const StreamError& value) { return join("stream", name(value)); },
      },
      failure.reason);
}

}  // namespace cordon::parser
