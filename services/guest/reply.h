// Answers: an encoded message and the bulk behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/channel/message.h"
#include "services/guest/diag-ring.h"
#include "services/guest/spool.h"

namespace cordon::guest {

// Immutable, so that a stored reply can be sent on several connections at once.
struct Reply {
  std::string control;      // the CONTROL frame
  bool hasBulk = false;     // DATA frames and END follow
  std::vector<Spool> bulk;  // one after the other

  [[nodiscard]] std::uint64_t bulkSize() const;
  // What it costs to keep.
  [[nodiscard]] std::uint64_t weight() const { return control.size() + bulkSize(); }
};
using ReplyPtr = std::shared_ptr<const Reply>;

// The reply with `body` to the request `id`. A body that the channel cannot carry becomes an EIO
// error and an `encode-failed` entry: silence would cost the host its whole time allowance.
ReplyPtr makeReply(DiagRing& diag, const channel::Id& id, channel::Body body,
                   std::vector<Spool> bulk = {});
ReplyPtr makeError(DiagRing& diag, const channel::Id& id, std::string_view errnoName,
                   std::string_view text);
// The newest `count` entries of the ring, oldest dropped until they fit into one control frame.
ReplyPtr makeDiagResult(DiagRing& diag, const channel::Id& id, std::size_t count);

// The channel's word for an errno of the kernel: those an honest agent sends, EIO for every other.
std::string_view errnoName(int error);
// "what: reason" with the kernel's reason in words.
std::string errnoText(std::string_view what, int error);

}  // namespace cordon::guest
