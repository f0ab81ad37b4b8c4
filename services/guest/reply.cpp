#include "services/guest/reply.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/channel/encoder.h"

namespace cordon::guest {

std::uint64_t Reply::bulkSize() const {
  std::uint64_t sum = 0;
  for (const Spool& part : bulk) sum += part.size();
  return sum;
}

ReplyPtr makeReply(DiagRing& diag, const channel::Id& id, channel::Body body,
                   std::vector<Spool> bulk) {
  channel::Message message{id, std::move(body)};
  auto encoded = channel::encodeControl(message);
  auto reply = std::make_shared<Reply>();
  if (auto* error = std::get_if<channel::EncodeError>(&encoded)) {
    diag.error("encode-failed",
               std::string(message.kind()) + ": " + std::string(channel::name(*error)), id);
    encoded = channel::encodeControl(
        {id, channel::Error{"EIO", "the reply cannot be encoded", std::nullopt, std::nullopt}});
    reply->control = std::move(std::get<std::string>(encoded));
    return reply;
  }
  reply->control = std::move(std::get<std::string>(encoded));
  reply->hasBulk = message.dataSize().has_value();
  for (Spool& part : bulk) part.shrink();
  reply->bulk = std::move(bulk);
  return reply;
}

ReplyPtr makeError(DiagRing& diag, const channel::Id& id, std::string_view errnoName,
                   std::string_view text) {
  channel::Error error;
  error.errnoName = errnoName;
  error.message = channel::toWireText(text, channel::MAX_MESSAGE_LENGTH);
  return makeReply(diag, id, std::move(error));
}

ReplyPtr makeDiagResult(DiagRing& diag, const channel::Id& id, std::size_t count) {
  channel::DiagResult all{diag.newest(count), diag.listenerRestarts()};
  // Bisection: the least number of oldest entries to drop lies in [0, drop].
  std::size_t keepAtLeast = 0;
  std::size_t keepAtMost = all.entries.size();
  auto newest = [&](std::size_t kept) {
    return channel::DiagResult{
        {all.entries.end() - static_cast<std::ptrdiff_t>(kept), all.entries.end()},
        all.listenerRestarts};
  };
  while (keepAtLeast < keepAtMost) {
    std::size_t middle =
        keepAtMost == all.entries.size() ? keepAtMost : (keepAtLeast + keepAtMost + 1) / 2;
    if (std::holds_alternative<std::string>(channel::encodeControl({id, newest(middle)}))) {
      keepAtLeast = middle;
    } else {
      keepAtMost = middle - 1;
    }
  }
  return makeReply(diag, id, newest(keepAtLeast));
}

std::string_view errnoName(int error) {
  switch (error) {
    case ENOENT:
      return "ENOENT";
    case EISDIR:
      return "EISDIR";
    case EACCES:
    case EPERM:
      return "EACCES";
    case ENOTDIR:
      return "ENOTDIR";
    case ENOSPC:
      return "ENOSPC";
    case EROFS:
      return "EROFS";
    default:
      return "EIO";
  }
}

std::string errnoText(std::string_view what, int error) {
  const char* reason = ::strerrordesc_np(error);
  return std::string(what) + ": " + (reason != nullptr ? reason : "unknown error");
}

}  // namespace cordon::guest
