#include "common/ipc/framing.h"

#include <limits>

namespace cordon::ipc {
namespace {

std::uint32_t littleEndian(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;)
    value = (value << 8) | std::to_integer<std::uint32_t>(bytes[offset + i]);
  return value;
}

}  // namespace

std::size_t MessageStart::restOfTable() const {
  // 4 bytes of count and 4 a segment, padded to words, less the first word.
  return (std::size_t{segments} / 2) * WORD_BYTES;
}

std::variant<MessageStart, ErrorCode> readStart(std::span<const std::byte, WORD_BYTES> word,
                                                std::size_t limitBytes) {
  const std::uint32_t countLessOne = littleEndian(word, 0);
  if (countLessOne == std::numeric_limits<std::uint32_t>::max()) return ErrorCode::BAD_MESSAGE;
  if (countLessOne >= MAX_SEGMENTS) return ErrorCode::MESSAGE_TOO_LARGE;
  const MessageStart start{.segments = countLessOne + 1,
                           .firstSegmentWords = littleEndian(word, 4)};
  const std::size_t least =
      WORD_BYTES + start.restOfTable() + std::size_t{start.firstSegmentWords} * WORD_BYTES;
  if (least > limitBytes) return ErrorCode::MESSAGE_TOO_LARGE;
  return start;
}

std::optional<ErrorCode> readTable(const MessageStart& start, std::span<const std::byte> table,
                                   std::size_t limitBytes, SegmentSizes& sizes) {
  if (table.size() != start.restOfTable()) return ErrorCode::BAD_MESSAGE;
  sizes.words[0] = start.firstSegmentWords;
  std::size_t total = start.firstSegmentWords;
  for (std::size_t i = 1; i < start.segments; ++i) {
    sizes.words.at(i) = littleEndian(table, (i - 1) * 4);
    // At most 512 numbers of 32 bits: the sum cannot wrap.
    total += sizes.words.at(i);
  }
  if (WORD_BYTES + table.size() + total * WORD_BYTES > limitBytes)
    return ErrorCode::MESSAGE_TOO_LARGE;
  sizes.totalWords = total;
  return std::nullopt;
}

}  // namespace cordon::ipc
