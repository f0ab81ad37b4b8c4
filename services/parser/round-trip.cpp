#include "services/parser/round-trip.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include <kj/debug.h>

#include "common/channel/decoder.h"
#include "common/channel/encoder.h"

namespace cordon::parser {
namespace {

using channel::DecodeError;
using channel::Decoder;

constexpr std::size_t RECEIVE_CHUNK = 65536;
constexpr std::size_t FRAMES_A_CHUNK =
    (BULK_CHUNK + channel::MAX_FRAME_PAYLOAD - 1) / channel::MAX_FRAME_PAYLOAD;

using End = decltype(RoundTripEnd::what);

TamperClass classOf(DecodeError error) {
  switch (error) {
    case DecodeError::FRAME_TOO_LARGE:
      return TamperClass::FRAME_TOO_LARGE;
    case DecodeError::PROTOCOL_VIOLATION:
      return TamperClass::PROTOCOL_VIOLATION;
    case DecodeError::INVALID_MESSAGE:
      return TamperClass::INVALID_MESSAGE;
    case DecodeError::BULK_OVERRUN:
      return TamperClass::BULK_OVERRUN;
    case DecodeError::BULK_MISMATCH:
      return TamperClass::BULK_MISMATCH;
    case DecodeError::TRUNCATED:
    case DecodeError::CLOSED:
      break;
  }
  KJ_UNREACHABLE;
}

kj::ArrayPtr<const kj::byte> asKj(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> asSpan(kj::ArrayPtr<const kj::byte> bytes) {
  return std::as_bytes(std::span<const kj::byte>(bytes.begin(), bytes.size()));
}

class RoundTrip {
 public:
  RoundTrip(Transport& via, kj::Timer& clock, Trace& events, Request& what, Reception& expected,
            Window& limit)
      : transport(via),
        timer(clock),
        trace(events),
        request(what),
        reception(expected),
        window(limit),
        decoder(expected.cap()) {}
  KJ_DISALLOW_COPY(RoundTrip);

  kj::Promise<RoundTripEnd> run() {
    kj::Promise<End> work = kj::evalNow([this]() { return connect(); });
    kj::Promise<End> expiry = window.expired().then([]() -> End { return Expired{}; });
    return work.exclusiveJoin(kj::mv(expiry)).then([this](End&& end) { return conclude(end); });
  }

 private:
  kj::Promise<End> connect() {
    return transport.connect().then([this](Transport::Connection&& connection) {
      if (std::holds_alternative<Unreachable>(connection)) return kj::Promise<End>(NotSent{});
      if (const auto* tamper = std::get_if<Tamper>(&connection)) return kj::Promise<End>(*tamper);
      stream = kj::mv(std::get<kj::Own<kj::AsyncIoStream>>(connection));
      return kj::evalNow([this]() { return send(); })
          .catch_([](kj::Exception&& exception) -> kj::Promise<End> {
            // Sources and sinks are caught where they are asked; this is the guest's connection.
            if (exception.getType() != kj::Exception::Type::DISCONNECTED) return kj::mv(exception);
            return End(Lost{});
          });
    });
  }

  // ---- sending ----

  kj::Promise<End> send() {
    note(TraceStep::SENT_CONTROL, request.kind, request.control.size());
    return stream->write(request.control.data(), request.control.size()).then([this]() {
      if (!request.size) {
        sent = true;
        return receive();
      }
      request.sent.restart();
      return sendBulk(0);
    });
  }

  kj::Promise<End> sendBulk(std::uint64_t offset) {
    const std::uint64_t size = *request.size;
    if (offset == size) return sendEnd();
    KJ_IF_MAYBE (source, request.source) {
      const auto wanted =
          static_cast<std::size_t>(std::min<std::uint64_t>(size - offset, BULK_CHUNK));
      window.pause();
      return kj::evalNow([&]() { return source->read(offset, wanted); })
          .then(
              [](kj::Array<const kj::byte>&& bytes) {
                return kj::Maybe<kj::Array<const kj::byte>>(kj::mv(bytes));
              },
              [](kj::Exception&&) { return kj::Maybe<kj::Array<const kj::byte>>(nullptr); })
          .then([this, offset, wanted](kj::Maybe<kj::Array<const kj::byte>>&& read) {
            window.resume();
            KJ_IF_MAYBE (bytes, read) {
              if (bytes->size() != wanted) return kj::Promise<End>(StreamError::SOURCE_SHORT);
              if (!request.sent.add(asSpan(*bytes)))
                return kj::Promise<End>(StreamError::SOURCE_CHANGED);
              return sendChunk(kj::mv(*bytes)).then([this, offset, wanted]() {
                return sendBulk(offset + wanted);
              });
            }
            return kj::Promise<End>(StreamError::FAILED);
          });
    }
    KJ_FAIL_REQUIRE("bulk without a source");
  }

  kj::Promise<void> sendChunk(kj::Array<const kj::byte> bytes) {
    std::span<const std::byte> rest = asSpan(bytes);
    std::size_t pieces = 0;
    for (std::size_t frame = 0; !rest.empty(); ++frame) {
      const auto payload = rest.first(std::min(rest.size(), channel::MAX_FRAME_PAYLOAD));
      rest = rest.subspan(payload.size());
      headers.at(frame) = bulk.frame(payload);
      chunk.at(pieces++) = asKj(std::span<const std::byte>(headers.at(frame)));
      chunk.at(pieces++) = asKj(payload);
    }
    return stream->write(kj::arrayPtr(chunk.data(), pieces)).attach(kj::mv(bytes));
  }

  kj::Promise<End> sendEnd() {
    endFrame = bulk.end();
    note(TraceStep::SENT_BULK, {}, bulk.size());
    note(TraceStep::SENT_END, {}, endFrame.size(), bulk.digest());
    return stream->write(endFrame.data(), endFrame.size()).then([this]() {
      sent = true;
      return receive();
    });
  }

  // ---- receiving ----

  kj::Promise<End> receive() {
    return stream->tryRead(buffer.begin(), 1, buffer.size()).then([this](std::size_t size) {
      if (size == 0) return kj::Promise<End>(Lost{});  // a whole reply is never waited behind here
      input = asSpan(buffer.slice(0, size));
      return digest();
    });
  }

  // Uses up `input`. A guest may cut bulk into frames of one byte: what came at once is handed on
  // at once.
  kj::Promise<End> digest() {
    for (std::size_t staged = 0;;) {
      const std::span<const std::byte> before = input;
      const bool isControl = decoder.message() == nullptr;
      const Decoder::Event event = decoder.next(input);
      if (isControl) control.add(before.first(before.size() - input.size()));
      if (const auto* error = std::get_if<DecodeError>(&event))
        return refuse(classOf(*error), decoder.offendingFrame());
      if (const auto* part = std::get_if<Decoder::Control>(&event)) {
        note(TraceStep::GOT_CONTROL, part->message->kind(), before.size() - input.size());
        if (const auto verdict = reception.judge(*part->message))
          return refuse(*verdict, control.value());
      } else if (const auto* bytes = std::get_if<Decoder::Bulk>(&event)) {
        // Towards the front, over frames that are decoded: never into what `input` still is.
        std::memmove(buffer.begin() + staged, bytes->bytes.data(), bytes->bytes.size());
        staged += bytes->bytes.size();
      } else {
        isWhole = std::holds_alternative<Decoder::Done>(event);
        received += staged;
        unread = asSpan(buffer.slice(0, staged));
        return deliver();
      }
    }
  }

  // Hands `unread` on.
  kj::Promise<End> deliver() {
    while (!unread.empty()) {
      Reception::Take take = reception.take(unread);
      if (const auto* difference = std::get_if<Reception::Differs>(&take))
        return refuse(TamperClass::REPLAY_DIFFERS, difference->replayed);
      if (auto* taken = std::get_if<kj::Promise<bool>>(&take)) {
        window.pause();
        return taken->then([this](bool ok) {
          window.resume();
          return ok ? deliver() : kj::Promise<End>(StreamError::FAILED);
        });
      }
    }
    return isWhole ? drain() : receive();
    // The analyzer does not follow what kj::Promise owns.
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks)
  }

  // The message is whole: nothing but EOF may follow it.
  kj::Promise<End> drain() {
    if (decoder.message()->dataSize()) {
      note(TraceStep::GOT_BULK, {}, received);
      note(TraceStep::GOT_END, {}, received, decoder.bulkDigest());
    }
    if (!input.empty()) return refuse(TamperClass::TRAILING_DATA, digestOf(input));
    return stream->tryRead(buffer.begin(), 1, buffer.size()).then([this](std::size_t size) {
      if (size != 0)
        return refuse(TamperClass::TRAILING_DATA, digestOf(asSpan(buffer.slice(0, size))));
      note(TraceStep::GOT_EOF);
      return kj::Promise<End>(decoder.take());
    });
  }

  static kj::Promise<End> refuse(TamperClass type, const channel::Sha256& evidence) {
    return End(Tamper{.type = type, .frame = evidence});
  }

  // ---- the end ----

  RoundTripEnd conclude(End& end) {
    RoundTripEnd result;
    // The window may also have run out inside connect: whoever knows whether the request left
    // (channel.md §8.5).
    result.delivered = stream.get() != nullptr || std::holds_alternative<Expired>(end);
    if (std::holds_alternative<StreamError>(end)) {
      result.delivered = sent;  // a guest does nothing with half a request
    } else if (std::holds_alternative<NotSent>(end)) {
      note(TraceStep::DIAL_FAILED);
    } else if (std::holds_alternative<Lost>(end)) {
      note(TraceStep::LOST, {}, received);
    } else if (std::holds_alternative<Expired>(end)) {
      note(TraceStep::EXPIRED, {}, received);
    } else if (const auto* tamper = std::get_if<Tamper>(&end)) {
      note(TraceStep::REFUSED, name(tamper->type), received, tamper->frame);
    }
    stream = nullptr;
    result.what = std::move(end);
    return result;
  }

  void note(TraceStep step, std::string_view kind = {}, std::uint64_t size = 0,
            std::optional<channel::Sha256> digest = std::nullopt) {
    trace.add({.at = timer.now(),
               .step = step,
               .id = request.id,
               .kind = kind,
               .size = size,
               .digest = digest});
  }

  Transport& transport;
  kj::Timer& timer;
  Trace& trace;
  Request& request;
  Reception& reception;
  Window& window;

  kj::Own<kj::AsyncIoStream> stream;
  bool sent = false;

  channel::BulkEncoder bulk;
  std::array<std::array<std::byte, channel::FRAME_HEADER_SIZE>, FRAMES_A_CHUNK> headers{};
  std::array<kj::ArrayPtr<const kj::byte>, 2 * FRAMES_A_CHUNK> chunk;
  std::string endFrame;

  Decoder decoder;
  RunningDigest control;  // of the reply's control frame
  kj::Array<kj::byte> buffer = kj::heapArray<kj::byte>(RECEIVE_CHUNK);
  std::span<const std::byte> input;   // read and not yet decoded, in `buffer`
  std::span<const std::byte> unread;  // bulk not yet handed on, in `buffer`
  std::uint64_t received = 0;         // bytes of bulk
  bool isWhole = false;               // the message
};

}  // namespace

kj::Promise<RoundTripEnd> roundTrip(Transport& transport, kj::Timer& timer, Trace& trace,
                                    Request& request, Reception& reception, Window& window) {
  auto trip = kj::heap<RoundTrip>(transport, timer, trace, request, reception, window);
  auto promise = trip->run();
  return promise.attach(kj::mv(trip));
}

}  // namespace cordon::parser
