#include "services/guest/reply-store.h"

#include "services/guest/clock.h"

namespace cordon::guest {

class ReplyStore::Running {
 public:
  explicit Running(const channel::Id& of) : id(of), startMs(nowMs()) {}
  channel::Id id;
  std::int64_t startMs;
  ReplyPtr reply;
};

void BoundedIds::insert(const channel::Id& id) {
  if (places.contains(id)) return;
  places.emplace(id, order.insert(order.end(), id));
  if (places.size() <= bound) return;
  places.erase(order.front());
  order.pop_front();
}

bool BoundedIds::erase(const channel::Id& id) {
  auto place = places.find(id);
  if (place == places.end()) return false;
  order.erase(place->second);
  places.erase(place);
  return true;
}

ReplyStore::Claim ReplyStore::claim(const channel::Id& id) {
  std::lock_guard lock(mutex);
  if (auto stored = replies.find(id); stored != replies.end()) return stored->second.reply;
  if (tombstones.contains(id) || acknowledged.contains(id)) return Stale{};
  if (auto other = running.find(id); other != running.end()) return Attach{other->second};
  auto mine = std::make_shared<Running>(id);
  running.emplace(id, mine);
  return Run{mine};
}

void ReplyStore::complete(const RunningPtr& finished, ReplyPtr reply) {
  // Freed after the lock: giving back a large reply takes the kernel a while.
  std::list<ReplyPtr> evicted;
  std::lock_guard lock(mutex);
  finished->reply = reply;
  completed.notify_all();
  running.erase(finished->id);
  std::uint64_t weight = reply->weight();
  if (weight > MAX_STORED_BYTES) {
    tombstones.insert(finished->id);
  } else {
    while (!order.empty() &&
           (replies.size() >= MAX_STORED_REPLIES || storedBytes + weight > MAX_STORED_BYTES)) {
      auto oldest = replies.find(order.front());
      tombstones.insert(oldest->first);
      evicted.push_back(oldest->second.reply);
      drop(oldest);
    }
    storedBytes += weight;
    auto place = order.insert(order.end(), finished->id);
    replies.emplace(finished->id, Stored{std::move(reply), place});
  }
}

void ReplyStore::drop(std::map<channel::Id, Stored>::iterator stored) {
  storedBytes -= stored->second.reply->weight();
  order.erase(stored->second.place);
  replies.erase(stored);
}

ReplyPtr ReplyStore::await(const RunningPtr& other) {
  std::unique_lock lock(mutex);
  completed.wait(lock, [&] { return other->reply != nullptr; });
  return other->reply;
}

ReplyStore::PollAnswer ReplyStore::poll(const channel::Id& id) {
  std::lock_guard lock(mutex);
  if (auto stored = replies.find(id); stored != replies.end()) return stored->second.reply;
  if (tombstones.contains(id)) return Stale{};
  if (auto other = running.find(id); other != running.end()) {
    return Pending{nowMs() - other->second->startMs};
  }
  return Unknown{};
}

void ReplyStore::acknowledge(const channel::Id& id) {
  ReplyPtr freed;
  std::lock_guard lock(mutex);
  if (auto stored = replies.find(id); stored != replies.end()) {
    freed = stored->second.reply;
    drop(stored);
  } else if (!tombstones.erase(id)) {
    return;
  }
  acknowledged.insert(id);
}

}  // namespace cordon::guest
