#include "common/records/junit/text-scan.h"

#include <algorithm>
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

// Whether what is no character yet may become one. The least and the greatest continuation are
// enough to try: each lead byte takes one of them.
bool mayContinue(std::string_view cut) {
  for (const char next : {'\x80', '\xbf'}) {
    std::array<char, LONGEST> whole{next, next, next, next};
    cut.copy(whole.data(), whole.size());
    if (cut.size() < LONGEST && characterLength({whole.data(), whole.size()}) > 0) return true;
  }
  return false;
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

std::optional<TextScan::Fault> TextScan::scan(std::string_view bytes) {
  while (carriedSize > 0 && !bytes.empty()) {
    carried[carriedSize++] = bytes.front();
    bytes.remove_prefix(1);
    const std::string_view sequence(carried.data(), carriedSize);
    const std::size_t length = characterLength(sequence);
    if (length == 0) {
      if (!mayContinue(sequence)) return Fault{consumed, Reason::NOT_UTF8};
      continue;
    }
    if (!legal(sequence)) return Fault{consumed, Reason::ILLEGAL_CHARACTER};
    consumed += length;
    carriedSize = 0;
  }
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
        if (!mayContinue(rest)) return Fault{consumed + at, Reason::NOT_UTF8};
        carriedSize = rest.copy(carried.data(), rest.size());
        consumed += at;
        return std::nullopt;
      }
      if (!legal(rest.substr(0, length))) return Fault{consumed + at, Reason::ILLEGAL_CHARACTER};
      at += length;
    }
  }
  consumed += at;
  return std::nullopt;
}

std::optional<TextScan::Fault> TextScan::finish() const {
  if (carriedSize == 0) return std::nullopt;
  return Fault{consumed, Reason::NOT_UTF8};
}

std::string_view cutText(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most);
}

}  // namespace cordon::records
