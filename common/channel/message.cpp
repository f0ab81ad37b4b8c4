#include "common/channel/message.h"

#include <algorithm>
#include <type_traits>

#include "common/channel/schema.h"

namespace cordon::channel {
namespace {

template <std::size_t N>
std::string hexOf(const std::array<std::uint8_t, N>& bytes) {
  constexpr std::string_view DIGITS = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * N);
  for (const std::uint8_t byte : bytes) {
    hex.push_back(DIGITS[byte >> 4]);
    hex.push_back(DIGITS[byte & 15]);
  }
  return hex;
}

std::optional<std::uint8_t> digitOf(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  return std::nullopt;
}

template <std::size_t N>
bool fromHex(std::string_view text, std::array<std::uint8_t, N>& bytes) {
  if (text.size() != 2 * N) return false;
  for (std::size_t i = 0; i < N; ++i) {
    const auto high = digitOf(text[2 * i]);
    const auto low = digitOf(text[2 * i + 1]);
    if (!high || !low) return false;
    bytes[i] = static_cast<std::uint8_t>(*high << 4 | *low);
  }
  return true;
}

}  // namespace

std::string toHex(const Id& id) {
  return hexOf(id.bytes);
}

std::optional<Id> idFromHex(std::string_view text) {
  Id id;
  if (!fromHex(text, id.bytes)) return std::nullopt;
  return id;
}

std::string toHex(const Sha256& digest) {
  return hexOf(digest);
}

std::optional<Sha256> sha256FromHex(std::string_view text) {
  Sha256 digest{};
  if (!fromHex(text, digest)) return std::nullopt;
  return digest;
}

std::optional<std::int64_t> Message::dataSize() const {
  return std::visit(
      [](const auto& kindBody) -> std::optional<std::int64_t> {
        if constexpr (requires { kindBody.dataSize; }) return kindBody.dataSize;
        return std::nullopt;
      },
      body);
}

std::string_view Message::kind() const {
  return std::visit(
      [](const auto& kindBody) { return Schema<std::remove_cvref_t<decltype(kindBody)>>::KIND; },
      body);
}

}  // namespace cordon::channel
