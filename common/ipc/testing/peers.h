// Two ends of an RPC connection in one process, for tests: what RpcPeer does, and what plain Cap'n
// Proto does.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <capnp/rpc-twoparty.h>
#include <capnp/serialize-async.h>
#include <capnp/serialize.h>
#include <kj/async-io.h>

#include "common/ipc/rpc-peer.h"
#include "protocols/parser.capnp.h"

namespace cordon::ipc::testing {

using ReadContext =
    capnp::CallContext<protocols::ByteSource::ReadParams, protocols::ByteSource::ReadResults>;
using Script = std::function<kj::Promise<void>(ReadContext)>;

// A ByteSource whose one method is whatever a test needs.
class ScriptedSource final : public protocols::ByteSource::Server {
 public:
  explicit ScriptedSource(Script readScript) : script(std::move(readScript)) {}
  kj::Promise<void> read(ReadContext context) override { return script(context); }

 private:
  Script script;
};
// A source that gives `size` zero bytes.
inline kj::Promise<void> giveZeros(ReadContext context) {
  const std::uint32_t size = context.getParams().getSize();
  context.releaseParams();
  context.getResults().initBytes(size);
  return kj::READY_NOW;
}

struct Loop {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  kj::Timer& timer() { return io.provider->getTimer(); }
  // For ever where it never happens: ctest's time-out is the deadline.
  void waitUntil(const std::function<bool()>& happened) {
    while (!happened()) timer().afterDelay(1 * kj::MILLISECONDS).wait(io.waitScope);
  }
};

// Limits with times that a test can wait for.
inline PeerLimits quickLimits() {
  PeerLimits limits;
  limits.watchInterval = 10 * kj::MILLISECONDS;
  limits.stallTime = 100 * kj::MILLISECONDS;
  limits.messageTime = 100 * kj::MILLISECONDS;
  return limits;
}

// A server behind RpcPeer, and the other end of its socket as it is.
struct ServedStream : Loop {
  explicit ServedStream(Script script, PeerLimits limits = quickLimits()) {
    auto pipe = io.provider->newTwoWayPipe();
    raw = kj::mv(pipe.ends[1]);
    server = kj::heap<RpcPeer>(
        kj::mv(pipe.ends[0]), RpcPeer::Side::SERVER,
        capnp::Capability::Client(kj::heap<ScriptedSource>(std::move(script))), limits, timer());
    ending = server->onEnd().fork();
  }
  // Runs until the server has ended the connection, and destroys it as its owner would.
  ErrorCode waitEnd() {
    const ErrorCode reason = ending.addBranch().wait(io.waitScope);
    server = nullptr;
    return reason;
  }
  void send(const void* bytes, std::size_t size) { raw->write(bytes, size).wait(io.waitScope); }
  void send(capnp::MessageBuilder& message) {
    capnp::writeMessage(*raw, message).wait(io.waitScope);
  }
  kj::Own<capnp::MessageReader> receive() { return capnp::readMessage(*raw).wait(io.waitScope); }

  kj::Own<kj::AsyncIoStream> raw;
  kj::Own<RpcPeer> server;
  kj::ForkedPromise<ErrorCode> ending = nullptr;
};

// As above, with Cap'n Proto's own client on the other end.
struct ServedClient : ServedStream {
  explicit ServedClient(Script script, PeerLimits limits = quickLimits())
      : ServedStream(std::move(script), limits), client(*raw) {}
  protocols::ByteSource::Client source() {
    return client.bootstrap().castAs<protocols::ByteSource>();
  }
  kj::Promise<std::size_t> read(protocols::ByteSource::Client& from, std::uint32_t size) {
    auto request = from.readRequest();
    request.setSize(size);
    return request.send().then(
        [](auto&& response) -> std::size_t { return response.getBytes().size(); });
  }

  capnp::TwoPartyClient client;
};

// What `promise` fails with; a failure of the test where it does not.
template <typename T>
kj::Exception failureOf(kj::Promise<T> promise, kj::WaitScope& waitScope) {
  auto failed = promise.then(
      [](auto&&...) { return kj::Maybe<kj::Exception>(); },
      [](kj::Exception&& exception) { return kj::Maybe<kj::Exception>(kj::mv(exception)); });
  KJ_IF_MAYBE (exception, failed.wait(waitScope)) {
    return kj::mv(*exception);
  }
  return KJ_EXCEPTION(FAILED, "the promise was kept");
}

inline std::string textOf(const kj::Exception& exception) {
  return exception.getDescription().cStr();
}

inline std::vector<kj::byte> flat(capnp::MessageBuilder& message) {
  const auto words = capnp::messageToFlatArray(message);
  const auto bytes = words.asBytes();
  return {bytes.begin(), bytes.end()};
}

}  // namespace cordon::ipc::testing
