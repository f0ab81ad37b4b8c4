#include "services/guest/diag-ring.h"

#include <algorithm>

#include "common/channel/encoder.h"
#include "services/guest/clock.h"

namespace cordon::guest {

using channel::DiagLevel;

DiagRing::DiagRing() : startMs(nowMs()) {}

void DiagRing::info(std::string_view event, std::string_view detail) {
  add(DiagLevel::INFO, event, detail, std::nullopt);
}

void DiagRing::warn(std::string_view event, std::string_view detail,
                    std::optional<channel::Id> request) {
  add(DiagLevel::WARN, event, detail, request);
}

void DiagRing::error(std::string_view event, std::string_view detail,
                     std::optional<channel::Id> request) {
  add(DiagLevel::ERROR, event, detail, request);
}

void DiagRing::request(const channel::Id& id, std::string_view kind) {
  add(DiagLevel::INFO, "request", kind, id);
}

void DiagRing::countListenerRestart() {
  std::lock_guard lock(mutex);
  ++restarts;
}

void DiagRing::add(DiagLevel level, std::string_view event, std::string_view detail,
                   std::optional<channel::Id> request) {
  channel::DiagEntry entry;
  entry.level = level;
  entry.event = event;
  if (request) entry.requestId = channel::toHex(*request);
  entry.detail = channel::toWireText(detail, channel::MAX_DIAG_DETAIL_LENGTH);
  std::lock_guard lock(mutex);
  // Taken under the lock, so that the order of the entries is the order of their times.
  entry.tsMs = nowMs() - startMs;
  entries.push_back(std::move(entry));
  if (entries.size() > DIAG_RING_ENTRIES) entries.pop_front();
}

std::vector<channel::DiagEntry> DiagRing::newest(std::size_t count) const {
  std::lock_guard lock(mutex);
  auto skip = entries.size() - std::min(count, entries.size());
  return {entries.begin() + static_cast<std::ptrdiff_t>(skip), entries.end()};
}

std::int64_t DiagRing::listenerRestarts() const {
  std::lock_guard lock(mutex);
  return restarts;
}

}  // namespace cordon::guest
