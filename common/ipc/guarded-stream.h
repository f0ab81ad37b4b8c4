// The byte stream of one RPC connection, with its limits: what RpcPeer puts between a socket and
// Cap'n Proto.
#pragma once

#include <functional>
#include <optional>

#include <capnp/serialize-async.h>
#include <kj/async-io.h>
#include <kj/async.h>
#include <kj/timer.h>

#include "common/ipc/inspect.h"
#include "common/ipc/limits.h"

namespace cordon::ipc {

// Frames messages itself (framing.h), so that Cap'n Proto never reads a header, and passes each
// through inspect.h. The first breach of a limit ends the stream in both directions and is kept as
// its reason.
class GuardedStream final : public capnp::MessageStream {
 public:
  // A code ends the connection.
  using Check = std::function<std::optional<ErrorCode>()>;

  // The references must outlive it.
  GuardedStream(kj::AsyncIoStream& stream, const PeerLimits& limits, kj::Timer& timer);

  // Called before each message that is read.
  void onEachMessage(Check check);

  // Ends it: what waits to be read or written fails with `reason`. Only the first reason counts.
  void abandon(ErrorCode reason);
  [[nodiscard]] std::optional<ErrorCode> endReason() const { return reasonOfEnd; }
  [[nodiscard]] const AnswerTable& answers() const { return answerTable; }

  // Implements MessageStream. Descriptors are never taken and never sent.
  using MessageStream::tryReadMessage;
  using MessageStream::writeMessage;
  using MessageStream::writeMessages;
  kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> tryReadMessage(
      kj::ArrayPtr<kj::AutoCloseFd> fdSpace, capnp::ReaderOptions options,
      kj::ArrayPtr<capnp::word> scratchSpace) override;
  kj::Promise<void> writeMessage(
      kj::ArrayPtr<const int> fds,
      kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) override;
  kj::Promise<void> writeMessages(
      kj::ArrayPtr<kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>> messages) override;
  kj::Maybe<int> getSendBufferSize() override;
  kj::Promise<void> end() override;

 private:
  class Incoming;

  kj::Promise<kj::Maybe<kj::Own<capnp::MessageReader>>> read(capnp::ReaderOptions options);
  kj::Promise<void> readRest(Incoming& incoming, std::size_t have);
  kj::Promise<void> readBody(Incoming& incoming);
  kj::Own<capnp::MessageReader> judge(kj::Own<Incoming> incoming, capnp::ReaderOptions options);
  // Keeps `code` as the reason, if it is the first, and gives the exception for it.
  kj::Exception breach(ErrorCode code);

  kj::AsyncIoStream& stream;
  const PeerLimits& limits;
  kj::Timer& timer;
  AnswerTable answerTable;
  Check check;
  std::optional<ErrorCode> reasonOfEnd;
  kj::Canceler reads;
  kj::Canceler writes;
};
}  // namespace cordon::ipc
