#include "tests/support/wire.h"

#include <span>
#include <utility>
#include <variant>

#include <kj/debug.h>

#include "common/channel/encoder.h"
#include "services/parser/digest.h"

namespace cordon::tests {
namespace {

std::span<const std::byte> bytesOf(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

}  // namespace

std::string wire(const channel::Message& message, std::string_view bulk) {
  auto encoded = channel::encodeMessage(message, bytesOf(bulk));
  if (const auto* error = std::get_if<channel::EncodeError>(&encoded))
    KJ_FAIL_REQUIRE("not encodable", std::string(name(*error)).c_str());
  return std::move(std::get<std::string>(encoded));
}

std::string wire(const channel::Id& id, channel::Body body, std::string_view bulk) {
  return wire(channel::Message{.id = id, .body = std::move(body)}, bulk);
}

std::string rawHeader(std::uint32_t length, std::uint8_t type) {
  return {static_cast<char>(length >> 24), static_cast<char>(length >> 16),
          static_cast<char>(length >> 8), static_cast<char>(length), static_cast<char>(type)};
}

std::string rawFrame(std::uint8_t type, std::string_view payload) {
  return rawHeader(static_cast<std::uint32_t>(payload.size()), type).append(payload);
}

std::string rawControl(std::string_view json) {
  return rawFrame(channel::FRAME_CONTROL, json);
}

std::string rawData(std::string_view bytes) {
  return rawFrame(channel::FRAME_DATA, bytes);
}

std::string rawEnd(std::string_view sha256, std::int64_t size) {
  return rawFrame(channel::FRAME_END, std::string("{\"sha256\":\"")
                                          .append(sha256)
                                          .append("\",\"size\":")
                                          .append(std::to_string(size))
                                          .append("}"));
}

std::string rawEnd(std::string_view bulk) {
  return rawEnd(sha256Hex(bulk), static_cast<std::int64_t>(bulk.size()));
}

std::string sha256Hex(std::string_view bytes) {
  return channel::toHex(parser::digestOf(bytesOf(bytes)));
}

channel::Id idOf(std::uint8_t fill) {
  channel::Id id;
  id.bytes.fill(fill);
  return id;
}

}  // namespace cordon::tests
