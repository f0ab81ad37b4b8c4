// What a request meets: which kinds are answered at once, which run at most once, which are
// refused.
#pragma once

#include <functional>

#include "common/channel/message.h"
#include "services/guest/diag-ring.h"
#include "services/guest/reply-store.h"
#include "services/guest/reply.h"
#include "services/guest/spool.h"

namespace cordon::guest {

// What came in: a verified message and its bulk.
struct Request {
  channel::Message message;
  Spool bulk;
};

struct Answer {
  ReplyPtr reply;
  bool threadUsable = true;  // see Workers::Serve
};

class Dispatcher {
 public:
  // Executes exec, read_file or write_file; every other durable kind never gets there.
  using Perform = std::function<Answer(const Request&)>;

  // Throws std::system_error if the kernel gives no random bytes for the session.
  Dispatcher(DiagRing& ring, Perform performer);

  // Blocks until the request, or the one it repeats, has its reply. Throws nothing but
  // std::bad_alloc: what `performer` throws becomes a stored EIO error, so that no id hangs for
  // ever.
  Answer answer(const Request& request);

  [[nodiscard]] const channel::Id& sessionId() const { return session; }

 private:
  ReplyPtr pong(const channel::Id& id);
  ReplyPtr polled(const channel::Id& id, const channel::Id& target);
  Answer once(const Request& request);
  Answer execute(const Request& request);
  ReplyPtr stale(const channel::Id& id);

  DiagRing& diag;
  Perform perform;
  channel::Id session;
  ReplyStore store;
};

}  // namespace cordon::guest
