#include "services/parser/digest.h"

#include <algorithm>

namespace cordon::parser {

channel::Sha256 digestOf(std::span<const std::byte> bytes) {
  RunningDigest digest;
  digest.add(bytes);
  return digest.value();
}

void ReplayCheck::restart() {
  again = RunningDigest();
  position = 0;
}

std::optional<std::span<const std::byte>> ReplayCheck::add(std::span<const std::byte> bytes) {
  if (position < total) {
    const auto known =
        static_cast<std::size_t>(std::min<std::uint64_t>(total - position, bytes.size()));
    again.add(bytes.first(known));
    position += known;
    bytes = bytes.subspan(known);
    if (position == total && again.value() != digest.value()) return std::nullopt;
  }
  digest.add(bytes);
  total += bytes.size();
  position += bytes.size();
  return bytes;
}

}  // namespace cordon::parser
