#include "common/ipc/error.h"

#include <array>
#include <string>

#include <kj/string.h>

namespace cordon::ipc {
namespace {

struct Row {
  ErrorCode code;
  std::string_view name;
  kj::Exception::Type type;
};

constexpr std::array ROWS{
    Row{ErrorCode::INTERNAL, "internal", kj::Exception::Type::FAILED},
    Row{ErrorCode::OVERLOADED, "overloaded", kj::Exception::Type::OVERLOADED},
    Row{ErrorCode::DISCONNECTED, "disconnected", kj::Exception::Type::DISCONNECTED},
    Row{ErrorCode::UNIMPLEMENTED, "unimplemented", kj::Exception::Type::UNIMPLEMENTED},
    Row{ErrorCode::DEADLINE, "deadline", kj::Exception::Type::OVERLOADED},
    Row{ErrorCode::BAD_MESSAGE, "bad-message", kj::Exception::Type::FAILED},
    Row{ErrorCode::MESSAGE_TOO_LARGE, "message-too-large", kj::Exception::Type::FAILED},
    Row{ErrorCode::TOO_MANY_CALLS, "too-many-calls", kj::Exception::Type::OVERLOADED},
    Row{ErrorCode::STALLED_PEER, "stalled-peer", kj::Exception::Type::OVERLOADED},
    Row{ErrorCode::PEER_REFUSED, "peer-refused", kj::Exception::Type::FAILED},
    Row{ErrorCode::TOO_MANY_CONNECTIONS, "too-many-connections", kj::Exception::Type::OVERLOADED},
    Row{ErrorCode::BAD_ARGUMENT, "bad-argument", kj::Exception::Type::FAILED},
    Row{ErrorCode::CANCELLED, "cancelled", kj::Exception::Type::DISCONNECTED},
};

constexpr bool rowsAreInOrder() {
  for (std::size_t i = 0; i < ROWS.size(); ++i) {
    if (static_cast<std::size_t>(ROWS[i].code) != i) return false;
  }
  return true;
}
static_assert(rowsAreInOrder() &&
              ROWS.size() == static_cast<std::size_t>(ErrorCode::CANCELLED) + 1);

const Row& row(ErrorCode code) {
  return ROWS.at(static_cast<std::size_t>(code));
}

constexpr std::string_view PREFIX = "cordon:";
constexpr std::string_view REMOTE_PREFIX = "remote exception: ";

}  // namespace

std::string_view name(ErrorCode code) {
  return row(code).name;
}

kj::Exception makeException(ErrorCode code) {
  const std::string text = std::string(PREFIX) + std::string(row(code).name);
  return kj::Exception(row(code).type, "", 0, kj::heapString(text.data(), text.size()));
}

std::optional<ErrorCode> parseCode(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  // Once for each connection that it came through.
  while (text.starts_with(REMOTE_PREFIX)) text.remove_prefix(REMOTE_PREFIX.size());
  if (!text.starts_with(PREFIX)) return std::nullopt;
  text.remove_prefix(PREFIX.size());
  for (const Row& candidate : ROWS) {
    if (candidate.name == text) return candidate.code;
  }
  return std::nullopt;
}

ErrorCode codeOf(const kj::Exception& exception) {
  const kj::StringPtr text = exception.getDescription();
  if (const auto code = parseCode(std::string_view(text.begin(), text.size()))) return *code;
  switch (exception.getType()) {
    case kj::Exception::Type::OVERLOADED:
      return ErrorCode::OVERLOADED;
    case kj::Exception::Type::DISCONNECTED:
      return ErrorCode::DISCONNECTED;
    case kj::Exception::Type::UNIMPLEMENTED:
      return ErrorCode::UNIMPLEMENTED;
    case kj::Exception::Type::FAILED:
      return ErrorCode::INTERNAL;
  }
  return ErrorCode::INTERNAL;
}

}  // namespace cordon::ipc
