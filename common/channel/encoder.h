// Writes messages of the guest channel in their canonical bytes. Source: protocols/channel.md §2
// and §4.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "common/channel/message.h"

namespace cordon::channel {

enum class EncodeError : std::uint8_t {
  CONTROL_TOO_LARGE,  // over MAX_FRAME_PAYLOAD; a control payload is never split
  INVALID_MESSAGE,    // a bound or cross rule that the decoder would refuse, or text that is not
                      // UTF-8 or holds NUL
};
std::string_view name(EncodeError error);

// The CONTROL frame, header included. Where message.dataSize() has a value, BulkEncoder's frames
// must follow.
std::variant<std::string, EncodeError> encodeControl(const Message& message);

// The header of a DATA frame with `size` payload bytes (1..MAX_FRAME_PAYLOAD), for senders that
// write the payload from where it lies.
std::array<std::byte, FRAME_HEADER_SIZE> dataHeader(std::size_t size);

// Turns bulk into DATA frames of MAX_FRAME_PAYLOAD bytes (the last may be shorter) and one END
// frame.
class BulkEncoder {
 public:
  BulkEncoder();
  ~BulkEncoder();
  BulkEncoder(BulkEncoder&&) noexcept;
  BulkEncoder& operator=(BulkEncoder&&) noexcept;

  // Counts and hashes `bytes` and returns the header of the DATA frame that carries
  // them; 1..MAX_FRAME_PAYLOAD bytes.
  std::array<std::byte, FRAME_HEADER_SIZE> frame(std::span<const std::byte> bytes);
  // The END frame, header included. Call once, last.
  std::string end();
  [[nodiscard]] std::uint64_t size() const;
  // Only after end().
  [[nodiscard]] const Sha256& digest() const;

 private:
  struct State;
  std::unique_ptr<State> state;
};

// A whole message with its bulk in one buffer: for tests and small messages. bulk.size() must equal
// message.dataSize().
std::variant<std::string, EncodeError> encodeMessage(const Message& message,
                                                     std::span<const std::byte> bulk);

// Cuts `text` to at most `maxBytes` bytes at a UTF-8 boundary, after dropping ill-formed sequences
// and NUL bytes: how an honest endpoint makes text out of bytes it does not control.
std::string toWireText(std::string_view text, std::size_t maxBytes);

}  // namespace cordon::channel
