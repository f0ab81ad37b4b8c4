// Reads one message of the guest channel from a byte stream, incrementally. Source:
// protocols/channel.md §2 and §4.
//
// Everything read here may come from an attacker. The decoder holds at most one control or END
// payload (32 KiB), never allocates by a declared length, hands bulk on as it comes and throws
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "common/channel/limits.h"
#include "common/channel/message.h"

namespace cordon::channel {

// The seven outcomes other than a message. The first five say that no honest endpoint sent this
// (tamper); TRUNCATED and CLOSED are loss.
enum class DecodeError : std::uint8_t {
  FRAME_TOO_LARGE,     // a length field over MAX_FRAME_PAYLOAD, seen before the type byte is judged
  PROTOCOL_VIOLATION,  // unknown frame type, wrong order, bulk beyond the declared size
  INVALID_MESSAGE,  // not JSON, schema violation, wrong version, null, duplicate key, bad END shape
  BULK_OVERRUN,     // more bulk than the reader takes, declared or sent
  BULK_MISMATCH,    // size or digest in END disagree with what came
  TRUNCATED,        // the stream ended inside a frame or a message
  CLOSED,           // the stream ended where a message could have begun
};
std::string_view name(DecodeError error);  // "frame-too-large", …: the words of protocols/vectors
constexpr bool isTamper(DecodeError error) {
  return error < DecodeError::TRUNCATED;
}

class Decoder {
 public:
  // The input is used up; feed more, or call finish() at its end.
  struct NeedMore {};
  // A part of the bulk, in order; it points into the span that was fed and is unverified until
  // Done.
  struct Bulk {
    std::span<const std::byte> bytes;
  };
  // The message is complete and, where it had bulk, size and digest were right.
  struct Done {};
  // The control payload was read and is legal; bulk follows if its dataSize() has a value, else
  // Done does.
  struct Control {
    const Message* message;  // owned by the decoder
  };
  using Event = std::variant<NeedMore, Control, Bulk, Done, DecodeError>;

  // bulkCap: bytes of bulk this reader takes; a declaration over it is BULK_OVERRUN before any bulk
  // is read.
  explicit Decoder(std::uint64_t bulkCap);
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  // Consumes from the front of `input` up to the next event and shortens `input` accordingly. After
  // Done the rest of `input` is what the peer sent behind its message. After an error every call
  // returns that error. After Done every call returns Done and consumes nothing.
  Event next(std::span<const std::byte>& input);

  // The stream ended: CLOSED at a message boundary before any byte, TRUNCATED inside a message,
  // nothing after Done.
  [[nodiscard]] std::optional<DecodeError> finish() const;

  // The message read so far; null before Control.
  [[nodiscard]] const Message* message() const;
  // Moves the message out; only after Done.
  Message take();
  // SHA-256 over the verified bulk (of nothing, where there was none); only after Done.
  [[nodiscard]] const Sha256& bulkDigest() const;
  // SHA-256 of the frame (header and what came of its payload) in which the error was found: the
  // evidence of a tamper verdict. Only after a DecodeError from next().
  [[nodiscard]] Sha256 offendingFrame() const;

 private:
  struct State;
  std::unique_ptr<State> state;
};

// Decodes one control payload (no frame header). The message, or INVALID_MESSAGE.
std::variant<Message, DecodeError> decodeControl(std::span<const std::byte> payload);

}  // namespace cordon::channel
