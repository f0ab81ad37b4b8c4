#include "deploy/guest-exec/failure-text.h"

#include <algorithm>

#include <capnp/schema.h>

namespace cordon::deploy {
namespace {

// The enumerant's name in the schema; a number that this build's schema does not have stays a
// number.
template <typename T>
std::string word(T value) {
  auto enumerants = capnp::Schema::from<T>().getEnumerants();
  auto index = static_cast<unsigned>(value);
  if (index >= enumerants.size()) return "#" + std::to_string(index);
  return enumerants[index].getProto().getName().cStr();
}

std::string oneLine(std::string_view bytes) {
  std::string text = escapeForTerminal(bytes);
  for (std::size_t at; (at = text.find('\n')) != std::string::npos;) text.replace(at, 1, "\\x0a");
  return text;
}

std::string_view view(capnp::Data::Reader data) {
  return {reinterpret_cast<const char*>(data.begin()), data.size()};
}

}  // namespace

std::string describe(protocols::Failure::Reader failure) {
  using Which = protocols::Failure::Which;
  switch (failure.which()) {
    case Which::TAMPER:
      return "tamper(" + word(failure.getTamper().getClass()) + ")";
    case Which::LOSS:
      return "loss(" + word(failure.getLoss()) + ")";
    case Which::BUDGET:
      return "budget(" + word(failure.getBudget().getLayer()) + ")";
    case Which::GUEST: {
      auto guest = failure.getGuest();
      return "guest(" + oneLine(guest.getErrno().cStr()) + ": " +
             oneLine(view(guest.getMessage())) + ")";
    }
    case Which::FILE_LIMIT:
      return "fileLimit(" + std::to_string(failure.getFileLimit()) + ")";
    case Which::SESSION_CHANGED:
      return "sessionChanged";
    case Which::ARGUMENT:
      return "argument(" + word(failure.getArgument()) + ")";
    case Which::STREAM:
      return "stream(" + word(failure.getStream()) + ")";
  }
  return "#" + std::to_string(static_cast<unsigned>(failure.which()));
}

std::string escapeForTerminal(std::string_view bytes) {
  static constexpr std::string_view DIGITS = "0123456789abcdef";
  std::string escaped;
  escaped.reserve(bytes.size());
  for (char c : bytes) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      escaped += "\\\\";
    } else if (c == '\n' || c == '\t' || (byte >= 0x20 && byte < 0x7f)) {
      escaped += c;
    } else {
      escaped += "\\x";
      escaped += DIGITS[byte >> 4];
      escaped += DIGITS[byte & 15];
    }
  }
  return escaped;
}

}  // namespace cordon::deploy
