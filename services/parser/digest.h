// SHA-256 of what went by, and the check that bytes which come again are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/channel/message.h"
#include "common/channel/sha256.h"

namespace cordon::parser {

// By the channel's own hasher: OpenSSL's EVP reads its configuration file at its first use, which
// the sandbox takes for an attack.
class RunningDigest {
 public:
  void add(std::span<const std::byte> bytes) { hasher.update(bytes); }
  // Of all bytes so far; more may follow.
  [[nodiscard]] channel::Sha256 value() const {
    channel::Sha256Hasher copy = hasher;
    return copy.finish();
  }

 private:
  channel::Sha256Hasher hasher;
};

channel::Sha256 digestOf(std::span<const std::byte> bytes);

// A stream that may start again from its beginning, any number of times. What was seen before is
// compared by digest and not handed out a second time.
class ReplayCheck {
 public:
  void restart();
  // The part of `bytes` that is new; nothing where the bytes seen before turn out to be others now.
  // A difference shows only when as many bytes came as were seen before.
  std::optional<std::span<const std::byte>> add(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t seen() const { return total; }
  // Of all bytes seen.
  [[nodiscard]] channel::Sha256 value() const { return digest.value(); }
  // Of what came since restart(), as far as it was seen before: evidence of a difference.
  [[nodiscard]] channel::Sha256 replayed() const { return again.value(); }

 private:
  RunningDigest digest;
  RunningDigest again;
  std::uint64_t total = 0;
  std::uint64_t position = 0;
};

}  // namespace cordon::parser
