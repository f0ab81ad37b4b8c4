// Waits for a launcher's cells as one: they end together.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "services/helper/launch/cell.h"
#include "services/helper/launch/relay.h"
#include "services/helper/launch/unique-fd.h"

namespace cordon::launch {

inline constexpr std::chrono::milliseconds STOP_TIMEOUT{5000};  // from SIGTERM to SIGKILL

struct Ended {
  std::string name;
  Ending ending;
};

struct Outcome {
  bool asked = false;        // SIGTERM, SIGINT or SIGHUP came before anything ended
  std::vector<Ended> ended;  // in the order in which the cells ended
  [[nodiscard]] const Ending& of(const std::string& name) const;
};

// SIGTERM, SIGINT and SIGHUP as a descriptor; from here on they do not interrupt the caller. Call
// before the first cell starts, so that no signal is lost.
UniqueFd catchSignals();

// Returns when every cell has ended. When one ends, or a signal comes, the others get SIGTERM and,
// STOP_TIMEOUT later, SIGKILL.
Outcome supervise(std::vector<Cell> cells, std::vector<std::unique_ptr<Relay>> relays,
                  const UniqueFd& signals, std::chrono::milliseconds stopTimeout = STOP_TIMEOUT);

// Ends this process as `ending` says: with the same code, or by the same signal.
[[noreturn]] void endAs(const Ending& ending);

}  // namespace cordon::launch
