// At most once: what the agent remembers of the requests it ran. Source: protocols/channel.md §10.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <variant>

#include "common/channel/message.h"
#include "services/guest/reply.h"

namespace cordon::guest {

inline constexpr std::size_t MAX_STORED_REPLIES = 256;
inline constexpr std::size_t MAX_TOMBSTONES = 4096;
inline constexpr std::size_t MAX_ACKNOWLEDGED = 4096;
inline constexpr std::uint64_t MAX_STORED_BYTES = 64u << 20;

// A set of ids that forgets its oldest beyond a bound.
class BoundedIds {
 public:
  explicit BoundedIds(std::size_t limit) : bound(limit) {}
  void insert(const channel::Id& id);
  bool erase(const channel::Id& id);
  [[nodiscard]] bool contains(const channel::Id& id) const { return places.contains(id); }

 private:
  std::size_t bound;
  std::list<channel::Id> order;
  std::map<channel::Id, std::list<channel::Id>::iterator> places;
};

class ReplyStore {
 public:
  class Running;
  using RunningPtr = std::shared_ptr<Running>;

  // What a request under an id meets.
  struct Stale {};  // it ran and its result is gone, evicted or acknowledged
  struct Attach {   // it runs now: await() its reply
    RunningPtr running;
  };
  struct Run {  // it is new and now registered: execute it, then complete() it, whatever happens
    RunningPtr running;
  };
  using Claim = std::variant<ReplyPtr, Stale, Attach, Run>;

  struct Unknown {};
  struct Pending {
    std::int64_t elapsedMs;
  };
  using PollAnswer = std::variant<ReplyPtr, Stale, Pending, Unknown>;

  // Decides in one step under one lock: two separate ones would run an effect twice when a first
  // attempt completes between them.
  Claim claim(const channel::Id& id);
  // Keeps the reply, evicting the oldest to tombstones, and wakes who is attached. A reply over
  // MAX_STORED_BYTES goes to those alone and leaves a tombstone.
  void complete(const RunningPtr& running, ReplyPtr reply);
  // Blocks until the request has completed.
  ReplyPtr await(const RunningPtr& running);

  PollAnswer poll(const channel::Id& id);
  // Forgets the reply but not that it was there. Of an unknown or a running id it changes nothing.
  void acknowledge(const channel::Id& id);

 private:
  struct Stored {
    ReplyPtr reply;
    std::list<channel::Id>::iterator place;
  };
  void drop(std::map<channel::Id, Stored>::iterator stored);

  std::mutex mutex;
  std::condition_variable completed;
  std::map<channel::Id, Stored> replies;
  std::list<channel::Id> order;  // of `replies`, oldest first
  std::uint64_t storedBytes = 0;
  std::map<channel::Id, RunningPtr> running;
  BoundedIds tombstones{MAX_TOMBSTONES};
  BoundedIds acknowledged{MAX_ACKNOWLEDGED};
};

}  // namespace cordon::guest
