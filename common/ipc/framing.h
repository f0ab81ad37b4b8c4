// The stream framing of Cap'n Proto messages, read before Cap'n Proto sees a byte of it.
//
// Source: capnproto.org/encoding.html#serialization-over-a-stream. A message begins with a table of
// little-endian u32: the number of segments less one, then the size of each segment in words, then
// padding to a whole word. Version 0.9.2 adds one to the first number before it compares:
// 0xffffffff becomes 0 segments and passes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "common/ipc/error.h"
#include "common/ipc/limits.h"

namespace cordon::ipc {

inline constexpr std::size_t WORD_BYTES = 8;

// What the first word of a message says.
struct MessageStart {
  std::uint32_t segments = 0;  // 1..MAX_SEGMENTS
  std::uint32_t firstSegmentWords = 0;
  // Bytes of the table behind the first word: a multiple of 8.
  [[nodiscard]] std::size_t restOfTable() const;
};

// BAD_MESSAGE for a count that wraps; MESSAGE_TOO_LARGE for more segments than MAX_SEGMENTS, or
// where table and first segment alone exceed `limitBytes`.
std::variant<MessageStart, ErrorCode> readStart(std::span<const std::byte, WORD_BYTES> word,
                                                std::size_t limitBytes);

// The sizes of all segments, in words, and their sum.
struct SegmentSizes {
  std::array<std::uint32_t, MAX_SEGMENTS> words{};
  std::size_t totalWords = 0;
};
// table: what restOfTable() counted. MESSAGE_TOO_LARGE where table and segments together exceed
// `limitBytes`.
std::optional<ErrorCode> readTable(const MessageStart& start, std::span<const std::byte> table,
                                   std::size_t limitBytes, SegmentSizes& sizes);

}  // namespace cordon::ipc
