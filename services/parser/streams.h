// The caller's ByteSource and ByteSink as the channel client wants them. A few pieces at a time are
// in memory: the next is asked for, or handed on, only when there is room for it.
#pragma once

#include <vector>

#include "protocols/parser.capnp.h"
#include "services/parser/bulk.h"

namespace cordon::parser {

class RemoteSource final : public BulkSource {
 public:
  explicit RemoteSource(protocols::ByteSource::Client source);
  kj::Promise<kj::Array<const kj::byte>> read(std::uint64_t offset, std::size_t size) override;

 private:
  protocols::ByteSource::Client source;
};

class RemoteSink final : public BulkSink {
 public:
  // Bytes in a call, but for the last one and for larger writes: a guest that sends its bulk byte
  // by byte must not make a call of each.
  static constexpr std::size_t PIECE = 65536;

  explicit RemoteSink(protocols::ByteSink::Client sink);
  // Resolves when the connection has room for more, not when the caller has taken the bytes; a
  // fault of the caller is told by a later write or by end().
  kj::Promise<void> write(kj::ArrayPtr<const kj::byte> bytes) override;
  kj::Promise<void> end() override;

 private:
  kj::Promise<void> send(kj::ArrayPtr<const kj::byte> bytes);
  kj::Promise<void> flush();

  protocols::ByteSink::Client sink;
  std::vector<kj::byte> gathered;
};

}  // namespace cordon::parser
