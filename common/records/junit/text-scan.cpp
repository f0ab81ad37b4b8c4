#include "common/records/junit/text-scan.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "common/channel/text.h"

namespace cordon::records {

namespace {

constexpr std::size_t BLOCK = 64;
constexpr std::size_t LONGEST = 4;  // bytes of a character

// Sixteen bytes at once, signed: what is less than a space is a control, or not ASCII.
using Vector = signed char __attribute__((vector_size(16)));

// Whether all of a block is ASCII without controls but tab and line ends: most of most documents.
bool plain(const char* block) {
  Vector special{};
  for (std::size_t i = 0; i < BLOCK; i += sizeof(Vector)) {
    Vector bytes;
    std::memcpy(&bytes, block + i, sizeof bytes);
    special |= (bytes < ' ') & (bytes != '\t') & (bytes != '\n') & (bytes != '\r');
  }
  std::array<std::uint64_t, 2> halves{};
  std::memcpy(halves.data(), &special, sizeof special);
  return (halves[0] | halves[1]) == 0;
}

// Bytes of the character at the front; 0 where there is none that is well-formed and complete.
std::size_t characterLength(std::string_view text) {
  if (static_cast<unsigned char>(text.front()) < 0x80) return 1;
  return channel::sequenceLength(text);
}

// Bytes of the character that what is none yet may become; 0 where it cannot. The least and the
// greatest continuation are enough to try: each lead byte takes one of them.
std::size_t wholeLength(std::string_view cut) {
  for (const char next : {'\x80', '\xbf'}) {
    std::array<char, LONGEST> whole{next, next, next, next};
    cut.copy(whole.data(), whole.size());
    const std::size_t length = characterLength({whole.data(), whole.size()});
    if (cut.size() < length) return length;
  }
  return 0;
}

// XML 1.0, production 2, of a well-formed character.
bool legal(std::string_view character) {
  const char first = character.front();
  if (character.size() == 1) {
    return static_cast<unsigned char>(first) >= 0x20 || first == '\t' || first == '\n' ||
           first == '\r';
  }
  return character != "\xef\xbf\xbe" && character != "\xef\xbf\xbf";
}

}  // namespace

TextScan scanText(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    if (bytes.size() - at >= BLOCK && plain(bytes.data() + at)) {
      at += BLOCK;
      continue;
    }
    const std::size_t end = std::min(at + BLOCK, bytes.size());
    while (at < end) {
      const std::string_view rest = bytes.substr(at, LONGEST);
      const std::size_t length = characterLength(rest);
      if (length == 0) {
        const std::size_t whole = wholeLength(rest);
        if (whole == 0) return {.good = at, .fault = Reason::NOT_UTF8};
        return {.good = at, .cutLength = whole};
      }
      if (!legal(rest.substr(0, length))) {
        return {.good = at, .fault = Reason::ILLEGAL_CHARACTER};
      }
      at += length;
    }
  }
  return {.good = at};
}

std::string_view cutText(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most);
}

}  // namespace cordon::records
