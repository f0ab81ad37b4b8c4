#include "common/channel/decoder.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "common/channel/json-reader.h"
#include "common/channel/sha256.h"

namespace cordon::channel {
namespace {

std::string_view textOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> takeFront(std::span<const std::byte>& input, std::size_t size) {
  const auto front = input.first(std::min(input.size(), size));
  input = input.subspan(front.size());
  return front;
}

}  // namespace

std::string_view name(DecodeError error) {
  switch (error) {
    case DecodeError::FRAME_TOO_LARGE:
      return "frame-too-large";
    case DecodeError::PROTOCOL_VIOLATION:
      return "protocol-violation";
    case DecodeError::INVALID_MESSAGE:
      return "invalid-message";
    case DecodeError::BULK_OVERRUN:
      return "bulk-overrun";
    case DecodeError::BULK_MISMATCH:
      return "bulk-mismatch";
    case DecodeError::TRUNCATED:
      return "truncated";
    case DecodeError::CLOSED:
      return "closed";
  }
  return "unknown";
}

struct Decoder::State {
  enum class Phase : std::uint8_t { CONTROL, ANNOUNCED, BULK, DONE, FAILED };

  explicit State(std::uint64_t cap) : bulkCap(cap) {}

  std::uint64_t bulkCap;
  Phase phase = Phase::CONTROL;
  DecodeError error = DecodeError::CLOSED;

  // The frame being read.
  std::array<std::byte, FRAME_HEADER_SIZE> header{};
  std::size_t headerSize = 0;
  std::size_t length = 0;     // of its payload, at most MAX_FRAME_PAYLOAD
  std::size_t remaining = 0;  // of its payload, not yet come
  std::string payload;        // of CONTROL and END; grows as bytes come, not by the length field

  Message message;
  std::uint64_t declared = 0;
  std::uint64_t received = 0;
  unsigned emptyFrames = 0;
  Sha256Hasher hasher;
  Sha256 digest{};
  Sha256 offending{};

  [[nodiscard]] std::uint8_t type() const { return std::to_integer<std::uint8_t>(header.back()); }

  DecodeError fail(DecodeError what) {
    Sha256Hasher frame;
    frame.update(std::span(header).first(headerSize));
    frame.update(std::as_bytes(std::span(payload)));
    offending = frame.finish();
    phase = Phase::FAILED;
    error = what;
    return what;
  }

  // Judges a complete header. The order is the protocol's: length, type, then what may come now.
  std::optional<DecodeError> openFrame() {
    length = 0;
    for (std::size_t i = 0; i < 4; ++i)
      length = length << 8 | std::to_integer<std::size_t>(header[i]);
    if (length > MAX_FRAME_PAYLOAD) return DecodeError::FRAME_TOO_LARGE;
    remaining = length;
    switch (type()) {
      case FRAME_CONTROL:
        if (phase != Phase::CONTROL) return DecodeError::PROTOCOL_VIOLATION;
        return std::nullopt;
      case FRAME_DATA:
        if (phase != Phase::BULK) return DecodeError::PROTOCOL_VIOLATION;
        if (received + length > bulkCap) return DecodeError::BULK_OVERRUN;
        if (received + length > declared) return DecodeError::PROTOCOL_VIOLATION;
        if (length == 0 && ++emptyFrames > MAX_EMPTY_DATA_FRAMES)
          return DecodeError::INVALID_MESSAGE;
        return std::nullopt;
      case FRAME_END:
        if (phase != Phase::BULK) return DecodeError::PROTOCOL_VIOLATION;
        return std::nullopt;
      default:
        return DecodeError::PROTOCOL_VIOLATION;
    }
  }

  void closeFrame() {
    headerSize = 0;
    payload.clear();
  }

  Event readBulk(std::span<const std::byte>& input) {
    const auto bytes = takeFront(input, remaining);
    remaining -= bytes.size();
    received += bytes.size();
    hasher.update(bytes);
    if (remaining == 0) closeFrame();
    return Bulk{bytes};
  }

  Event closeControl() {
    auto read = readControl(payload);
    if (!read) return fail(DecodeError::INVALID_MESSAGE);
    message = std::move(*read);
    const auto size = message.dataSize();
    if (size) {
      declared = static_cast<std::uint64_t>(*size);
      if (declared > bulkCap) return fail(DecodeError::BULK_OVERRUN);
    }
    phase = size ? Phase::BULK : Phase::ANNOUNCED;
    closeFrame();
    return Control{&message};
  }

  Event closeEnd() {
    const auto end = readEnd(payload);
    if (!end) return fail(DecodeError::INVALID_MESSAGE);
    digest = hasher.finish();
    if (static_cast<std::uint64_t>(end->size) != received || received != declared ||
        end->sha256 != digest) {
      return fail(DecodeError::BULK_MISMATCH);
    }
    closeFrame();
    phase = Phase::DONE;
    return Done{};
  }
};

Decoder::Decoder(std::uint64_t bulkCap) : state(std::make_unique<State>(bulkCap)) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

Decoder::Event Decoder::next(std::span<const std::byte>& input) {
  State& s = *state;
  for (;;) {
    if (s.phase == State::Phase::FAILED) return s.error;
    if (s.phase == State::Phase::DONE) return Done{};
    if (s.phase == State::Phase::ANNOUNCED) {
      s.digest = s.hasher.finish();
      s.phase = State::Phase::DONE;
      return Done{};
    }
    if (s.headerSize < FRAME_HEADER_SIZE) {
      const auto bytes = takeFront(input, FRAME_HEADER_SIZE - s.headerSize);
      std::copy(bytes.begin(), bytes.end(),
                s.header.begin() + static_cast<std::ptrdiff_t>(s.headerSize));
      s.headerSize += bytes.size();
      if (s.headerSize < FRAME_HEADER_SIZE) return NeedMore{};
      if (const auto fault = s.openFrame()) return s.fail(*fault);
    }
    if (s.type() == FRAME_DATA) {
      if (s.length == 0) {
        s.closeFrame();
        continue;
      }
      if (input.empty()) return NeedMore{};
      return s.readBulk(input);
    }
    const auto bytes = takeFront(input, s.remaining);
    s.payload += textOf(bytes);
    s.remaining -= bytes.size();
    if (s.remaining > 0) return NeedMore{};
    return s.type() == FRAME_CONTROL ? s.closeControl() : s.closeEnd();
  }
}

std::optional<DecodeError> Decoder::finish() const {
  switch (state->phase) {
    case State::Phase::CONTROL:
      return state->headerSize == 0 ? DecodeError::CLOSED : DecodeError::TRUNCATED;
    case State::Phase::BULK:
      return DecodeError::TRUNCATED;
    case State::Phase::FAILED:
      return state->error;
    case State::Phase::ANNOUNCED:
    case State::Phase::DONE:
      break;
  }
  return std::nullopt;
}

const Message* Decoder::message() const {
  const bool read = state->phase == State::Phase::ANNOUNCED || state->phase == State::Phase::BULK ||
                    state->phase == State::Phase::DONE;
  return read ? &state->message : nullptr;
}

Message Decoder::take() {
  return std::move(state->message);
}
const Sha256& Decoder::bulkDigest() const {
  return state->digest;
}
Sha256 Decoder::offendingFrame() const {
  return state->offending;
}

std::variant<Message, DecodeError> decodeControl(std::span<const std::byte> payload) {
  if (payload.size() > MAX_FRAME_PAYLOAD) return DecodeError::INVALID_MESSAGE;
  auto message = readControl(textOf(payload));
  if (!message) return DecodeError::INVALID_MESSAGE;
  return std::move(*message);
}

}  // namespace cordon::channel
