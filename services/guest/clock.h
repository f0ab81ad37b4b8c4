// Monotonic milliseconds: the only time the agent measures.
#pragma once

#include <cstdint>
#include <ctime>

namespace cordon::guest {

// CLOCK_BOOTTIME would count a suspended guest as running; budgets are of time the command could
// use.
inline std::int64_t nowMs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace cordon::guest
