#include "common/ipc/rpc-peer.h"

namespace cordon::ipc {
namespace {

using VatSide = capnp::rpc::twoparty::Side;

VatSide toVatSide(RpcPeer::Side side) {
  return side == RpcPeer::Side::CLIENT ? VatSide::CLIENT : VatSide::SERVER;
}

capnp::ReaderOptions readerOptions(const PeerLimits& limits) {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = limits.messageBytes / sizeof(capnp::word);
  options.nestingLimit = limits.nesting;
  return options;
}

}  // namespace

RpcPeer::RpcPeer(kj::Own<kj::AsyncIoStream> byteStream, Side side,
                 kj::Maybe<capnp::Capability::Client> own, const PeerLimits& peerLimits,
                 kj::Timer& clock)
    : limits(peerLimits),
      timer(clock),
      stream(kj::mv(byteStream)),
      guarded(*stream, limits, timer),
      // The constructor without a number of descriptors: none is taken, none is sent.
      network(guarded, toVatSide(side), readerOptions(limits)),
      system(network, kj::mv(own)) {
  system.setFlowLimit(limits.flowBytes / sizeof(capnp::word));
  guarded.onEachMessage([this]() { return overdue(); });
}

RpcPeer::~RpcPeer() noexcept(false) = default;

capnp::Capability::Client RpcPeer::bootstrap() {
  capnp::MallocMessageBuilder message(4);
  auto vat = message.initRoot<capnp::rpc::twoparty::VatId>();
  vat.setSide(network.getSide() == VatSide::CLIENT ? VatSide::SERVER : VatSide::CLIENT);
  return system.bootstrap(vat);
}

kj::Promise<ErrorCode> RpcPeer::onEnd() {
  return network.onDisconnect()
      .then([this]() { return guarded.endReason().value_or(ErrorCode::DISCONNECTED); })
      .exclusiveJoin(watch());
}

void RpcPeer::end(ErrorCode reason) {
  guarded.abandon(reason);
}

std::size_t RpcPeer::queuedBytes() {
  return network.getCurrentQueueSize();
}

std::size_t RpcPeer::callsInFlight() const {
  return guarded.answers().callsInFlight();
}

std::optional<ErrorCode> RpcPeer::overdue() {
  // The queue of Cap'n Proto 0.9.2 has no end: a peer that asks and does not read would fill the
  // memory.
  if (network.getCurrentQueueSize() > limits.queueBytes) return ErrorCode::STALLED_PEER;
  if (network.getOutgoingMessageWaitTime() > limits.stallTime) return ErrorCode::STALLED_PEER;
  if (guarded.answers().hasCallBefore(timer.now() - limits.callTime)) return ErrorCode::DEADLINE;
  return std::nullopt;
}

kj::Promise<ErrorCode> RpcPeer::watch() {
  return timer.afterDelay(limits.watchInterval).then([this]() -> kj::Promise<ErrorCode> {
    if (const auto code = overdue()) {
      guarded.abandon(*code);
      return *code;
    }
    // An ended stream is reported here too: Cap'n Proto waits for a last write, which a stalled
    // peer never takes.
    if (const auto reason = guarded.endReason()) return *reason;
    return watch();
  });
}

}  // namespace cordon::ipc
