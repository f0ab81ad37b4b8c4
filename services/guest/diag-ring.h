// The newest events of the agent, in memory only: what a host may ask for when something went
// wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/channel/message.h"

namespace cordon::guest {

inline constexpr std::size_t DIAG_RING_ENTRIES = 256;

class DiagRing {
 public:
  // Time zero of every entry is the construction.
  DiagRing();

  // Text that is not clean UTF-8, or too long, is cut to what the channel carries.
  void info(std::string_view event, std::string_view detail);
  void warn(std::string_view event, std::string_view detail,
            std::optional<channel::Id> request = std::nullopt);
  void error(std::string_view event, std::string_view detail,
             std::optional<channel::Id> request = std::nullopt);
  // One for each request that is not a poll: a long wait would flush the ring.
  void request(const channel::Id& id, std::string_view kind);
  void countListenerRestart();

  // The newest `count`, oldest first.
  [[nodiscard]] std::vector<channel::DiagEntry> newest(std::size_t count) const;
  [[nodiscard]] std::int64_t listenerRestarts() const;

 private:
  void add(channel::DiagLevel level, std::string_view event, std::string_view detail,
           std::optional<channel::Id> request);

  std::int64_t startMs;
  mutable std::mutex mutex;
  std::deque<channel::DiagEntry> entries;
  std::int64_t restarts = 0;
};

}  // namespace cordon::guest
