// The caller's ByteSource and ByteSink as the channel client wants them. One piece at a time is in memory: the next is
// asked for, or handed on, only when the last was taken.
#pragma once

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
  explicit RemoteSink(protocols::ByteSink::Client sink);
  // Resolves when the connection has room for more, not when the caller has taken the bytes; a fault of the caller is
  // told by a later write or by end().
  kj::Promise<void> write(kj::ArrayPtr<const kj::byte> bytes) override;
  kj::Promise<void> end() override;

 private:
  protocols::ByteSink::Client sink;
};

}  // namespace cordon::parser
