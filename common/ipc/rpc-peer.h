// One Cap'n Proto connection between two services, with every limit set. The only way in which
// cordon speaks RPC: TwoPartyServer, TwoPartyClient and EzRpc expose none of them.
#pragma once

#include <cstdint>
#include <optional>

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <kj/timer.h>

#include "common/ipc/error.h"
#include "common/ipc/guarded-stream.h"
#include "common/ipc/limits.h"

namespace cordon::ipc {

class RpcPeer {
 public:
  enum class Side : std::uint8_t { CLIENT, SERVER };

  // `timer` must outlive it. own: what the other side gets as its bootstrap; null: nothing.
  RpcPeer(kj::Own<kj::AsyncIoStream> stream, Side side, kj::Maybe<capnp::Capability::Client> own,
          const PeerLimits& limits, kj::Timer& timer);
  ~RpcPeer() noexcept(false);
  KJ_DISALLOW_COPY(RpcPeer);

  // What the other side offers.
  capnp::Capability::Client bootstrap();

  // To be called once, and awaited, since it also runs the watch over time and queue. Resolves when
  // the connection is over, with the reason: DISCONNECTED where the peer went, else the limit that
  // it broke. The owner then destroys the RpcPeer, which closes the socket.
  kj::Promise<ErrorCode> onEnd();

  // Ends it from this side: calls in flight fail with `reason`.
  void end(ErrorCode reason);

  // A call of ours with a deadline: fails with DEADLINE, and is cancelled, if it takes longer than
  // `time`.
  template <typename T>
  kj::Promise<T> within(kj::Duration time, kj::Promise<T> promise) {
    return promise.exclusiveJoin(timer.afterDelay(time).then(
        []() -> kj::Promise<T> { return makeException(ErrorCode::DEADLINE); }));
  }

  // Bytes of messages that wait to be taken by the peer.
  [[nodiscard]] std::size_t queuedBytes();
  // Calls of the peer that are not answered yet.
  [[nodiscard]] std::size_t callsInFlight() const;

 private:
  std::optional<ErrorCode> overdue();
  kj::Promise<ErrorCode> watch();

  PeerLimits limits;
  kj::Timer& timer;
  kj::Own<kj::AsyncIoStream> stream;
  GuardedStream guarded;
  capnp::TwoPartyVatNetwork network;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> system;
};

}  // namespace cordon::ipc
