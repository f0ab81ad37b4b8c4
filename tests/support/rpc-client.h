// A guest as it is seen through a parser's RPC (protocols/parser.capnp), as a ConformanceClient,
// over a connection of its own. It checks that what the parser says stays within the contract's
// bounds.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <kj/async-io.h>
#include <kj/time.h>

#include "common/ipc/rpc-peer.h"
#include "protocols/parser.capnp.h"
#include "services/parser/guest-client.h"
#include "tests/support/conformance.h"

namespace cordon::tests {

struct GuestAddress {
  std::uint32_t cid = 0;
  std::uint32_t uid = 0;
};

class RpcClient final : public ConformanceClient {
 public:
  // parserPath: where the parser listens. Fails with a KJ exception where nothing does. The
  // context, which must outlive the client, is the calling thread's. connections: made to the guest
  // so far, told by whoever stands in front of it; the parser does not tell.
  RpcClient(kj::AsyncIoContext& context, const std::string& parserPath, GuestAddress guest,
            std::function<unsigned()> connections = nullptr);
  ~RpcClient() noexcept override = default;

  parser::Outcome<parser::Pong> ping() override;
  parser::Outcome<parser::Finished> exec(channel::Exec request,
                                         const std::optional<std::string>& input,
                                         std::string& output, std::string& errors,
                                         std::optional<channel::Id> id = {}) override;
  parser::Outcome<parser::Content> readFile(channel::ReadFile request,
                                            std::string& content) override;
  parser::Outcome<parser::Written> writeFile(channel::WriteFile request,
                                             const std::string& content) override;
  parser::Outcome<parser::Polled> poll(const channel::Id& target) override;
  parser::Outcome<parser::DiagReport> diag(std::int64_t maxEntries) override;
  std::optional<unsigned> exchanges() override;

  parser::Outcome<parser::Pong> pinSession();
  // Pings until the guest answers or `limit` is over; the last outcome.
  parser::Outcome<parser::Pong> waitReady(kj::Duration limit);
  // What the parser says of itself.
  capnp::Response<protocols::Parser::DescribeResults> describe();

 private:
  kj::AsyncIoContext& io;
  std::function<unsigned()> count;
  parser::KernelIdSource ids;
  kj::Own<ipc::RpcPeer> peer;
  kj::Promise<void> watching = nullptr;
  protocols::Parser::Client parserClient;
  protocols::GuestChannel::Client channel;
};

}  // namespace cordon::tests
