// A small client of a channel parser: enough to run a command in a guest, for a program or a test.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kj/async-io.h>

#include "common/ipc/rpc-peer.h"
#include "protocols/parser.capnp.h"

namespace cordon::deploy {

// 16 bytes from the kernel's random source.
kj::Array<kj::byte> newRequestId();

// Takes bulk into memory; over `limit` bytes it fails the call that it was given to.
class MemorySink final : public protocols::ByteSink::Server {
 public:
  MemorySink(std::string& target, std::size_t limit) : bytes(target), most(limit) {}
  kj::Promise<void> write(WriteContext context) override;
  kj::Promise<void> end(EndContext context) override;

 private:
  std::string& bytes;
  std::size_t most;
};

// Gives bulk from memory that must stay until the call has returned.
class MemorySource final : public protocols::ByteSource::Server {
 public:
  explicit MemorySource(kj::ArrayPtr<const kj::byte> content) : bytes(content) {}
  kj::Promise<void> read(ReadContext context) override;

 private:
  kj::ArrayPtr<const kj::byte> bytes;
};
struct ExecRequest {
  std::vector<std::string> argv = {};
  std::optional<std::string> cwd = {};
  std::optional<std::string> user = {};
  std::vector<std::pair<std::string, std::string>> env = {};
  std::uint64_t commandMs = 60'000;
  std::optional<kj::ArrayPtr<const kj::byte>> input = {};
};

struct ExecOutcome {
  std::int32_t rc = 0;
  std::string out;
  std::string err;
  std::uint32_t deliveries = 0;
  std::optional<std::string> failure;  // as describe() words it; all else is then empty
};

class ParserClient {
 public:
  // Connects within `waitMs`: a parser that is being started has no socket yet. Throws
  // kj::Exception.
  ParserClient(kj::AsyncIoContext& io, const std::string& path, std::uint64_t waitMs);

  protocols::Parser::Client parser() { return client; }
  protocols::GuestChannel::Client openChannel(std::uint32_t cid, std::uint32_t uid);

  // Pings until the guest answers. Nothing on success, else the last failure: at once where waiting
  // cannot help, or after `waitMs`.
  std::optional<std::string> waitReady(protocols::GuestChannel::Client& channel,
                                       std::uint64_t waitMs);

  ExecOutcome exec(protocols::GuestChannel::Client& channel, const ExecRequest& request);

 private:
  kj::AsyncIoContext& io;
  kj::Own<ipc::RpcPeer> peer;
  kj::Promise<void> watching = nullptr;
  protocols::Parser::Client client = nullptr;
};

}  // namespace cordon::deploy
