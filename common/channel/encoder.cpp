#include "common/channel/encoder.h"

#include <algorithm>

#include "common/channel/json-writer.h"
#include "common/channel/legal.h"
#include "common/channel/sha256.h"

namespace cordon::channel {
namespace {

std::array<std::byte, FRAME_HEADER_SIZE> header(std::uint8_t type, std::size_t size) {
  return {std::byte(size >> 24 & 0xff), std::byte(size >> 16 & 0xff), std::byte(size >> 8 & 0xff),
          std::byte(size & 0xff), std::byte{type}};
}

void append(std::string& out, std::span<const std::byte> bytes) {
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string frameOf(std::uint8_t type, std::string_view payload) {
  std::string out;
  out.reserve(FRAME_HEADER_SIZE + payload.size());
  append(out, header(type, payload.size()));
  out += payload;
  return out;
}

}  // namespace

std::string_view name(EncodeError error) {
  switch (error) {
    case EncodeError::CONTROL_TOO_LARGE:
      return "control-too-large";
    case EncodeError::INVALID_MESSAGE:
      return "invalid-message";
  }
  return "unknown";
}

std::variant<std::string, EncodeError> encodeControl(const Message& message) {
  if (!isLegal(message)) return EncodeError::INVALID_MESSAGE;
  const std::string payload = writeControl(message);
  if (payload.size() > MAX_FRAME_PAYLOAD) return EncodeError::CONTROL_TOO_LARGE;
  return frameOf(FRAME_CONTROL, payload);
}

std::array<std::byte, FRAME_HEADER_SIZE> dataHeader(std::size_t size) {
  return header(FRAME_DATA, size);
}

struct BulkEncoder::State {
  Sha256Hasher hasher;
  std::uint64_t size = 0;
  Sha256 digest{};
};

BulkEncoder::BulkEncoder() : state(std::make_unique<State>()) {}
BulkEncoder::~BulkEncoder() = default;
BulkEncoder::BulkEncoder(BulkEncoder&&) noexcept = default;
BulkEncoder& BulkEncoder::operator=(BulkEncoder&&) noexcept = default;

std::array<std::byte, FRAME_HEADER_SIZE> BulkEncoder::frame(std::span<const std::byte> bytes) {
  state->hasher.update(bytes);
  state->size += bytes.size();
  return dataHeader(bytes.size());
}

std::string BulkEncoder::end() {
  state->digest = state->hasher.finish();
  return frameOf(FRAME_END, writeEnd({state->digest, static_cast<std::int64_t>(state->size)}));
}

std::uint64_t BulkEncoder::size() const {
  return state->size;
}
const Sha256& BulkEncoder::digest() const {
  return state->digest;
}

std::variant<std::string, EncodeError> encodeMessage(const Message& message,
                                                     std::span<const std::byte> bulk) {
  const auto declared = message.dataSize();
  if (static_cast<std::uint64_t>(declared.value_or(0)) != bulk.size()) {
    return EncodeError::INVALID_MESSAGE;
  }
  auto control = encodeControl(message);
  if (!declared || std::holds_alternative<EncodeError>(control)) return control;
  std::string out = std::move(std::get<std::string>(control));
  BulkEncoder encoder;
  while (!bulk.empty()) {
    const auto part = bulk.first(std::min(bulk.size(), MAX_FRAME_PAYLOAD));
    append(out, encoder.frame(part));
    append(out, part);
    bulk = bulk.subspan(part.size());
  }
  out += encoder.end();
  return out;
}

}  // namespace cordon::channel
