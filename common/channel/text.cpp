#include "common/channel/text.h"

#include <cstdint>
#include <string>

#include "common/channel/encoder.h"

namespace cordon::channel {

std::size_t sequenceLength(std::string_view text) {
  const auto at = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const auto continues = [&](std::size_t i, std::uint8_t low = 0x80, std::uint8_t high = 0xbf) {
    return i < text.size() && at(i) >= low && at(i) <= high;
  };
  const std::uint8_t lead = at(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return continues(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    // Overlong forms below e0 a0, surrogates from ed a0.
    const std::uint8_t low = lead == 0xe0 ? 0xa0 : 0x80;
    const std::uint8_t high = lead == 0xed ? 0x9f : 0xbf;
    return continues(1, low, high) && continues(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    // Overlong forms below f0 90, beyond U+10FFFF from f4 90.
    const std::uint8_t low = lead == 0xf0 ? 0x90 : 0x80;
    const std::uint8_t high = lead == 0xf4 ? 0x8f : 0xbf;
    return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

std::optional<std::size_t> countCodePoints(std::string_view text) {
  std::size_t count = 0;
  while (!text.empty()) {
    const std::size_t length = sequenceLength(text);
    if (length == 0 || text.front() == '\0') return std::nullopt;
    text.remove_prefix(length);
    ++count;
  }
  return count;
}

std::string toWireText(std::string_view text, std::size_t maxBytes) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = sequenceLength(text);
    if (length == 0 || text.front() == '\0') {
      text.remove_prefix(1);
      continue;
    }
    if (out.size() + length > maxBytes) break;
    out.append(text.substr(0, length));
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace cordon::channel
