#include "common/log/visible.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace cordon::log {
namespace {

struct Decoded {
  char32_t point = 0;
  std::size_t length = 0;  // bytes; 0: not UTF-8 here
};

// `text` is not empty.
Decoded decode(std::string_view text) {
  const auto byteAt = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byteAt(0);
  if (lead < 0x80) return {lead, 1};
  std::size_t length = 0;
  char32_t point = 0;
  char32_t least = 0;  // under it the form is overlong
  if ((lead & 0xe0) == 0xc0) {
    length = 2, point = lead & 0x1f, least = 0x80;
  } else if ((lead & 0xf0) == 0xe0) {
    length = 3, point = lead & 0x0f, least = 0x800;
  } else if ((lead & 0xf8) == 0xf0) {
    length = 4, point = lead & 0x07, least = 0x10000;
  }
  if (length == 0 || text.size() < length) return {};
  for (std::size_t i = 1; i < length; ++i) {
    if ((byteAt(i) & 0xc0) != 0x80) return {};
    point = (point << 6) | (byteAt(i) & 0x3f);
  }
  const bool isSurrogate = point >= 0xd800 && point <= 0xdfff;
  if (point < least || point > 0x10ffff || isSurrogate) return {};
  return {point, length};
}

struct Range {
  char32_t first;
  char32_t last;
};

// Controls of Unicode 15 that change how their neighbours are shown, and what shows as nothing.
constexpr std::array<Range, 12> UNSEEN = {{
    {0x00, 0x1f},
    {0x7f, 0x9f},
    {0xad, 0xad},
    {0x61c, 0x61c},
    {0x180e, 0x180e},
    {0x200b, 0x200f},
    {0x2028, 0x202e},
    {0x2060, 0x206f},
    {0xfe00, 0xfe0f},
    {0xfeff, 0xfeff},
    {0xfff9, 0xfffb},
    {0xe0000, 0xe0fff},
}};

bool isSeen(char32_t point) {
  for (const Range& range : UNSEEN) {
    if (point >= range.first && point <= range.last) return false;
  }
  return true;
}

constexpr std::string_view HEX = "0123456789abcdef";

void appendPoint(std::string& out, char32_t point) {
  out += "\\u{";
  bool begun = false;
  for (int shift = 20; shift >= 0; shift -= 4) {
    const auto digit = (point >> shift) & 0xf;
    begun = begun || digit != 0 || shift == 0;
    if (begun) out += HEX[digit];
  }
  out += '}';
}

}  // namespace

bool isUtf8(std::string_view text) {
  while (!text.empty()) {
    const Decoded decoded = decode(text);
    if (decoded.length == 0) return false;
    text.remove_prefix(decoded.length);
  }
  return true;
}

std::string visible(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Decoded decoded = decode(text);
    if (decoded.length == 0) {
      const auto byte = static_cast<std::uint8_t>(text.front());
      out += "\\x";
      out += HEX[byte >> 4];
      out += HEX[byte & 0xf];
      text.remove_prefix(1);
      continue;
    }
    if (decoded.point == '\\') {
      out += "\\\\";
    } else if (isSeen(decoded.point)) {
      out += text.substr(0, decoded.length);
    } else {
      appendPoint(out, decoded.point);
    }
    text.remove_prefix(decoded.length);
  }
  return out;
}

}  // namespace cordon::log
