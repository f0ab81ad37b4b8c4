// SHA-256 of a stream. Shared by all that link cordon-channel, so that there is one way to hash.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "common/channel/message.h"

namespace cordon::channel {

// A copy continues from the same state, so that a digest can be taken in the middle of a stream.
class Sha256Hasher {
 public:
  Sha256Hasher();
  void update(std::span<const std::byte> bytes);
  // The digest of all that was given. The hasher is used up: only assignment may follow.
  Sha256 finish();

 private:
  // OpenSSL's state, kept opaque so that its headers stay out of ours; its size is checked in
  // sha256.cpp.
  alignas(8) std::array<std::byte, 112> state;
};

Sha256 sha256Of(std::span<const std::byte> bytes);
Sha256 sha256Of(std::string_view bytes);

}  // namespace cordon::channel
