#include "common/log/escape.h"

#include <algorithm>

namespace cordon::log {
namespace {

constexpr std::string_view HEX = "0123456789abcdef";

bool isPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("._:/@,+-").find(c) != std::string_view::npos;
}

void appendEscaped(std::string& out, char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (byte < 0x20 || byte > 0x7e) {
    out += "\\x";
    out += HEX[byte >> 4];
    out += HEX[byte & 0xf];
  } else {
    out += c;
  }
}

}  // namespace

void appendValue(std::string& out, std::string_view value, std::size_t limit) {
  // The longest prefix is known to be cut before it is looked at, so a megabyte costs no more than
  // a line.
  const std::string_view head = value.substr(0, limit);
  if (head.size() == value.size() && !value.empty() &&
      std::all_of(head.begin(), head.end(), isPlain)) {
    out += value;
    return;
  }
  std::string escaped;
  bool cut = head.size() != value.size();
  for (const char c : head) {
    const std::size_t before = escaped.size();
    appendEscaped(escaped, c);
    if (escaped.size() > limit) {
      escaped.resize(before);
      cut = true;
      break;
    }
  }
  out += '"';
  out += escaped;
  out += '"';
  if (cut) out += '~';
}

}  // namespace cordon::log
