// OpenSSL calls the SHA256_* functions deprecated in favour of EVP. EVP resolves algorithms through
// providers, which would pull most of libcrypto into the static guest agent; these functions are
// the same code without that.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "common/channel/sha256.h"

#include <new>
#include <type_traits>

#include <openssl/sha.h>

namespace cordon::channel {
namespace {

SHA256_CTX* context(std::array<std::byte, 112>& state) {
  static_assert(sizeof(SHA256_CTX) == 112 && alignof(SHA256_CTX) <= 8);
  static_assert(std::is_trivially_copyable_v<SHA256_CTX>);
  return std::launder(reinterpret_cast<SHA256_CTX*>(state.data()));
}

}  // namespace

Sha256Hasher::Sha256Hasher() {
  SHA256_Init(new (state.data()) SHA256_CTX);
}

void Sha256Hasher::update(std::span<const std::byte> bytes) {
  SHA256_Update(context(state), bytes.data(), bytes.size());
}

Sha256 Sha256Hasher::finish() {
  Sha256 digest{};
  SHA256_Final(digest.data(), context(state));
  return digest;
}

Sha256 sha256Of(std::span<const std::byte> bytes) {
  Sha256Hasher hasher;
  hasher.update(bytes);
  return hasher.finish();
}

Sha256 sha256Of(std::string_view bytes) {
  return sha256Of(std::as_bytes(std::span(bytes)));
}

}  // namespace cordon::channel
