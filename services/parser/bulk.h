// Where the bulk of a request comes from and where the bulk of a reply goes to: the caller's side
// of an operation.
#pragma once

#include <cstddef>
#include <cstdint>

#include <kj/array.h>
#include <kj/async.h>
#include <kj/common.h>

namespace cordon::parser {

inline constexpr std::size_t BULK_CHUNK = 262144;  // bytes: bulkChunk of protocols/parser.capnp

class BulkSource {
 public:
  virtual ~BulkSource() noexcept(false) = default;
  // Exactly `size` bytes (1..BULK_CHUNK) from `offset`; the client never asks beyond the size that
  // the request announced. Asked in rising order, and again from 0 when the request is resent.
  // Another number of bytes ends the operation as SOURCE_SHORT, other bytes than before as
  // SOURCE_CHANGED, a rejected promise as FAILED.
  virtual kj::Promise<kj::Array<const kj::byte>> read(std::uint64_t offset, std::size_t size) = 0;
};

class BulkSink {
 public:
  virtual ~BulkSink() noexcept(false) = default;
  // The next 1..BULK_CHUNK bytes; they stay valid until the promise resolves, and no other call
  // comes before that. What was written is unverified until the operation ends well (or as
  // FileLimit). A rejected promise ends the operation as FAILED.
  virtual kj::Promise<void> write(kj::ArrayPtr<const kj::byte> bytes) = 0;
  // All is written and verified. Called once, and only where the operation can end well or as
  // FileLimit.
  virtual kj::Promise<void> end() = 0;
};

}  // namespace cordon::parser
