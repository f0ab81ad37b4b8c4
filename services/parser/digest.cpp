#include "services/parser/digest.h"

#include <algorithm>

#include <kj/debug.h>
#include <openssl/evp.h>

namespace cordon::parser {

RunningDigest::RunningDigest() : context(EVP_MD_CTX_new()) {
  KJ_REQUIRE(context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1,
             "SHA-256 is not available");
}

RunningDigest::~RunningDigest() = default;

void RunningDigest::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

void RunningDigest::add(std::span<const std::byte> bytes) {
  KJ_REQUIRE(EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1);
}

channel::Sha256 RunningDigest::value() const {
  const std::unique_ptr<EVP_MD_CTX, Free> copy(EVP_MD_CTX_new());
  channel::Sha256 digest{};
  unsigned size = 0;
  KJ_REQUIRE(copy != nullptr && EVP_MD_CTX_copy_ex(copy.get(), context.get()) == 1 &&
             EVP_DigestFinal_ex(copy.get(), digest.data(), &size) == 1 && size == digest.size());
  return digest;
}

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
