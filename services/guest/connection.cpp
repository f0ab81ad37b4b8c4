#include "services/guest/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <poll.h>
#include <span>
#include <string>
#include <sys/socket.h>
#include <sys/uio.h>
#include <utility>
#include <variant>

#include "common/channel/decoder.h"
#include "common/channel/encoder.h"

namespace cordon::guest {
namespace {

// Beyond this the bulk of a request lies in a file: the agent's own memory stays small whatever is
// uploaded.
constexpr std::size_t REQUEST_IN_MEMORY = 1u << 20;
constexpr std::size_t PIECE = channel::MAX_FRAME_PAYLOAD;
constexpr std::size_t RECEIVE = 64u << 10;

}  // namespace

bool Connection::ready(short events) {
  pollfd polled{socket.get(), events, 0};
  for (;;) {
    int count = ::poll(&polled, 1, static_cast<int>(idleMs));
    if (count > 0) return true;
    if (count == 0) errno = ETIMEDOUT;
    if (count == 0 || errno != EINTR) return false;
  }
}

std::optional<Request> Connection::receive() {
  channel::Decoder decoder(channel::GUEST_INBOUND_BULK_CAP);
  Spool bulk(REQUEST_IN_MEMORY);
  auto piece = std::make_unique_for_overwrite<std::byte[]>(RECEIVE);
  auto refuse = [&](std::string_view reason) -> std::optional<Request> {
    const channel::Message* message = decoder.message();
    diag.warn("decode-failed", reason,
              message != nullptr ? std::optional(message->id) : std::nullopt);
    return std::nullopt;
  };
  for (;;) {
    ssize_t count = ::recv(socket.get(), piece.get(), RECEIVE, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      if (ready(POLLIN)) continue;
      return refuse("idle: the peer sent nothing for too long");
    }
    if (count <= 0) {
      auto end = decoder.finish();
      // A peer that came and went asked for nothing.
      if (!end || *end == channel::DecodeError::CLOSED) return std::nullopt;
      return refuse(channel::name(*end));
    }
    std::span<const std::byte> input(piece.get(), static_cast<std::size_t>(count));
    for (bool more = true; more;) {
      auto event = decoder.next(input);
      if (auto* error = std::get_if<channel::DecodeError>(&event)) {
        return refuse(channel::name(*error));
      }
      if (auto* part = std::get_if<channel::Decoder::Bulk>(&event)) bulk.append(part->bytes);
      if (std::holds_alternative<channel::Decoder::Done>(event)) {
        return Request{decoder.take(), std::move(bulk)};
      }
      more = !std::holds_alternative<channel::Decoder::NeedMore>(event);
    }
  }
}

bool Connection::write(std::span<const std::byte> first, std::span<const std::byte> second) {
  while (!first.empty() || !second.empty()) {
    std::array<iovec, 2> parts{
        iovec{const_cast<std::byte*>(first.data()), first.size()},
        iovec{const_cast<std::byte*>(second.data()), second.size()},
    };
    msghdr header{};
    header.msg_iov = parts.data();
    header.msg_iovlen = parts.size();
    ssize_t count = ::sendmsg(socket.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN && ready(POLLOUT)) continue;
    if (count < 0) return false;
    auto sent = static_cast<std::size_t>(count);
    std::size_t fromFirst = std::min(sent, first.size());
    first = first.subspan(fromFirst);
    second = second.subspan(sent - fromFirst);
  }
  return true;
}

bool Connection::sendBulk(const Reply& reply) {
  channel::BulkEncoder encoder;
  auto piece = std::make_unique_for_overwrite<std::byte[]>(PIECE);
  std::size_t filled = 0;
  auto flush = [&] {
    std::span<const std::byte> payload(piece.get(), std::exchange(filled, 0));
    return payload.empty() || write(encoder.frame(payload), payload);
  };
  for (const Spool& part : reply.bulk) {
    for (std::uint64_t at = 0; at < part.size();) {
      std::ptrdiff_t got = part.read(at, {piece.get() + filled, PIECE - filled});
      if (got < 0) {
        errno = static_cast<int>(-got);
        return false;
      }
      at += static_cast<std::uint64_t>(got);
      filled += static_cast<std::size_t>(got);
      // Every DATA frame but the last is full, also where stdout ends and stderr begins.
      if (filled == PIECE && !flush()) return false;
    }
  }
  if (!flush()) return false;
  std::string end = encoder.end();
  return write(std::as_bytes(std::span(end)), {});
}

void Connection::send(const channel::Id& request, const Reply& reply) {
  if (!write(std::as_bytes(std::span(reply.control)), {}) || (reply.hasBulk && !sendBulk(reply))) {
    diag.warn("reply-write-failed", errnoText("the reply could not be sent", errno), request);
  }
  ::shutdown(socket.get(), SHUT_RDWR);
}

}  // namespace cordon::guest
