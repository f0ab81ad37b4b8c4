// The device's log: common/log, with a bound on what a flood of one peer's making can write. Fields
// are numbers and names of this program: nothing that a guest, a front end or a client chose is
// ever in them.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "common/log/log.h"

namespace cordon::vsock {

class BoundedLog {
 public:
  static constexpr unsigned BURST = 20;      // lines at once
  static constexpr unsigned PER_SECOND = 5;  // lines after that

  explicit BoundedLog(log::Log target) : lines(std::move(target)) {}

  // For what a peer can make happen again and again. What does not pass is counted; the next line
  // that passes is followed by log.suppressed with that count.
  void line(log::Level level, std::string_view event,
            std::initializer_list<log::Field> fields = {});
  // For what happens once in the life of the process, or at a pace of its own.
  void always(log::Level level, std::string_view event,
              std::initializer_list<log::Field> fields = {}) {
    lines.write(level, event, fields);
  }

 private:
  log::Log lines;
  unsigned tokens = BURST;
  std::uint64_t suppressed = 0;
  std::chrono::steady_clock::time_point refilled = std::chrono::steady_clock::now();
};

}  // namespace cordon::vsock
