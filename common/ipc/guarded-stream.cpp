#include "common/ipc/guarded-stream.h"

#include <array>
#include <bit>
#include <span>
#include <utility>
#include <vector>

#include <kj/debug.h>

#include "common/ipc/framing.h"

namespace cordon::ipc {
namespace {

using capnp::word;
using Segments = kj::ArrayPtr<const kj::ArrayPtr<const word>>;

// The header of a message that is sent, and the pieces of the whole.
struct Outgoing {
  kj::Array<std::uint32_t> table;
  kj::Array<kj::ArrayPtr<const kj::byte>> pieces;
};

static_assert(std::endian::native == std::endian::little,
              "the table is written in the host's order");

Outgoing frame(Segments segments) {
  KJ_REQUIRE(segments.size() >= 1 && segments.size() <= MAX_SEGMENTS, "no segment, or too many");
  Outgoing outgoing;
  outgoing.table = kj::heapArray<std::uint32_t>((segments.size() + 2) & ~std::size_t{1});
  outgoing.table[outgoing.table.size() - 1] = 0;
  outgoing.table[0] = static_cast<std::uint32_t>(segments.size() - 1);
  outgoing.pieces = kj::heapArray<kj::ArrayPtr<const kj::byte>>(segments.size() + 1);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    outgoing.table[i + 1] = static_cast<std::uint32_t>(segments[i].size());
    outgoing.pieces[i + 1] = segments[i].asBytes();
  }
  outgoing.pieces[0] = outgoing.table.asBytes();
  return outgoing;
}

// A message of ours in place of one of the peer's.
class ReplacedMessage final : public capnp::MessageReader {
 public:
  ReplacedMessage(Replacement message, capnp::ReaderOptions readerOptions)
      : MessageReader(readerOptions),
        builder(std::move(message)),
        segments(builder->getSegmentsForOutput()) {}
  ~ReplacedMessage() noexcept override = default;
  KJ_DISALLOW_COPY(ReplacedMessage);
  kj::ArrayPtr<const word> getSegment(capnp::uint id) override {
    if (id >= segments.size()) return nullptr;
    return segments[id];
  }

 private:
  Replacement builder;
  Segments segments;
};

}  // namespace

// A message while it arrives, and then the reader over it.
class GuardedStream::Incoming final : public capnp::MessageReader {
 public:
  explicit Incoming(capnp::ReaderOptions readerOptions) : MessageReader(readerOptions) {}
  ~Incoming() noexcept override = default;
  KJ_DISALLOW_COPY(Incoming);

  kj::ArrayPtr<const word> getSegment(capnp::uint id) override {
    if (id >= segments.size()) return nullptr;
    return segments[id];
  }
  // For a second reader over the same bytes, whose traversal counts apart.
  [[nodiscard]] Segments allSegments() const {
    return kj::arrayPtr(segments.data(), segments.size());
  }

  std::array<std::byte, WORD_BYTES> first{};
  MessageStart start;
  kj::Array<kj::byte> table;
  kj::Array<word> body;
  std::vector<kj::ArrayPtr<const word>> segments;
};

GuardedStream::GuardedStream(kj::AsyncIoStream& byteStream, const PeerLimits& peerLimits,
                             kj::Timer& clock)
    : stream(byteStream), limits(peerLimits), timer(clock), answerTable(peerLimits) {}

void GuardedStream::onEachMessage(Check checkMessage) {
  check = std::move(checkMessage);
}

kj::Exception GuardedStream::breach(ErrorCode code) {
  if (!reasonOfEnd) reasonOfEnd = code;
  return makeException(code);
}

void GuardedStream::abandon(ErrorCode reason) {
  const kj::Exception exception = breach(reason);
  reads.cancel(exception);
  writes.cancel(exception);
}

kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> GuardedStream::tryReadMessage(
    kj::ArrayPtr<kj::AutoCloseFd> fdSpace, capnp::ReaderOptions options, kj::ArrayPtr<word>) {
  KJ_REQUIRE(fdSpace.size() == 0, "no descriptor crosses an RPC connection");
  if (reasonOfEnd) return makeException(*reasonOfEnd);
  return reads.wrap(read(options))
      .then([](kj::Maybe<kj::Own<capnp::MessageReader>>&& message)
                -> kj::Maybe<capnp::MessageReaderAndFds> {
        KJ_IF_MAYBE (reader, message) {
          return capnp::MessageReaderAndFds{kj::mv(*reader), nullptr};
        }
        return nullptr;
      });
}

kj::Promise<kj::Maybe<kj::Own<capnp::MessageReader>>> GuardedStream::read(
    capnp::ReaderOptions options) {
  if (check) {
    if (const auto code = check()) return breach(*code);
  }
  auto incoming = kj::heap<Incoming>(options);
  Incoming& message = *incoming;
  // A peer may be silent as long as it likes between messages, not within one.
  return stream.tryRead(message.first.data(), 1, WORD_BYTES)
      .then([this, &message](std::size_t size) -> kj::Promise<bool> {
        if (size == 0) return false;
        return readRest(message, size)
            .then([]() { return true; })
            .exclusiveJoin(timer.afterDelay(limits.messageTime).then([this]() -> kj::Promise<bool> {
              return breach(ErrorCode::STALLED_PEER);
            }));
      })
      .then([this, options, incoming = kj::mv(incoming)](
                bool complete) mutable -> kj::Maybe<kj::Own<capnp::MessageReader>> {
        if (!complete) return nullptr;
        return judge(kj::mv(incoming), options);
      });
}

kj::Promise<void> GuardedStream::readRest(Incoming& incoming, std::size_t have) {
  if (have == WORD_BYTES) return readBody(incoming);
  return stream.read(incoming.first.data() + have, WORD_BYTES - have).then([this, &incoming]() {
    return readBody(incoming);
  });
}

kj::Promise<void> GuardedStream::readBody(Incoming& incoming) {
  const auto start = readStart(incoming.first, limits.messageBytes);
  if (const auto* code = std::get_if<ErrorCode>(&start)) return breach(*code);
  incoming.start = std::get<MessageStart>(start);
  incoming.table = kj::heapArray<kj::byte>(incoming.start.restOfTable());
  return stream.read(incoming.table.begin(), incoming.table.size())
      .then([this, &incoming]() -> kj::Promise<void> {
        SegmentSizes sizes;
        const auto table = std::as_bytes(std::span(incoming.table.begin(), incoming.table.size()));
        if (const auto code = readTable(incoming.start, table, limits.messageBytes, sizes))
          return breach(*code);
        incoming.body = kj::heapArray<word>(sizes.totalWords);
        incoming.segments.reserve(incoming.start.segments);
        std::size_t offset = 0;
        for (std::size_t i = 0; i < incoming.start.segments; ++i) {
          incoming.segments.push_back(incoming.body.slice(offset, offset + sizes.words.at(i)));
          offset += sizes.words.at(i);
        }
        return stream.read(incoming.body.begin(), incoming.body.size() * sizeof(word));
      });
}

kj::Own<capnp::MessageReader> GuardedStream::judge(kj::Own<Incoming> incoming,
                                                   capnp::ReaderOptions options) {
  Verdict verdict = ErrorCode::BAD_MESSAGE;
  const auto malformed = kj::runCatchingExceptions([&]() {
    capnp::SegmentArrayMessageReader reader(incoming->allSegments(), options);
    verdict =
        inspectInbound(reader.getRoot<capnp::rpc::Message>(), answerTable, limits, timer.now());
  });
  if (malformed != nullptr) verdict = ErrorCode::BAD_MESSAGE;
  if (const auto* code = std::get_if<ErrorCode>(&verdict)) kj::throwFatalException(breach(*code));
  if (auto* replacement = std::get_if<Replacement>(&verdict)) {
    return kj::heap<ReplacedMessage>(std::move(*replacement), options);
  }
  return incoming;
}

kj::Promise<void> GuardedStream::writeMessage(kj::ArrayPtr<const int> fds, Segments segments) {
  KJ_REQUIRE(fds.size() == 0, "no descriptor crosses an RPC connection");
  Replacement replacement;
  {
    capnp::SegmentArrayMessageReader reader(segments);
    const auto message = reader.getRoot<capnp::rpc::Message>();
    // Of an ended connection the peer still learns why.
    if (reasonOfEnd && !message.isAbort()) return makeException(*reasonOfEnd);
    Verdict verdict = inspectOutbound(message, answerTable);
    if (auto* replaced = std::get_if<Replacement>(&verdict)) replacement = std::move(*replaced);
  }
  if (replacement) segments = replacement->getSegmentsForOutput();
  Outgoing outgoing = frame(segments);
  auto written = stream.write(outgoing.pieces);
  return writes.wrap(
      written.attach(kj::mv(outgoing.table), kj::mv(outgoing.pieces), std::move(replacement)));
}

kj::Promise<void> GuardedStream::writeMessages(kj::ArrayPtr<Segments> messages) {
  if (messages.size() == 0) return kj::READY_NOW;
  return writeMessage(nullptr, messages[0]).then([this, messages]() mutable {
    return writeMessages(messages.slice(1, messages.size()));
  });
}

kj::Maybe<int> GuardedStream::getSendBufferSize() {
  return static_cast<int>(limits.streamWindow);
}

kj::Promise<void> GuardedStream::end() {
  stream.shutdownWrite();
  return kj::READY_NOW;
}

}  // namespace cordon::ipc
