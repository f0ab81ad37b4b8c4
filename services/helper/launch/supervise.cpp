#include "services/helper/launch/supervise.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "services/helper/launch/error.h"
#include "services/helper/launch/log.h"

namespace cordon::launch {
namespace {

using Clock = std::chrono::steady_clock;

sigset_t endingSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  return set;
}

class Supervision {
 public:
  Supervision(std::vector<Cell> allCells, std::vector<std::unique_ptr<Relay>> allRelays,
              const UniqueFd& signalFd, std::chrono::milliseconds timeout)
      : cells(std::move(allCells)),
        relays(std::move(allRelays)),
        signals(signalFd),
        stopTimeout(timeout) {}

  Outcome run() {
    while (!cells.empty()) wait();
    // What the programs had written before they ended is still in the pipes.
    for (const auto& relay : relays) {
      for (int rest = 0; rest < 64 && readable(relay->fd()) && relay->pump(); ++rest) {
      }
    }
    return std::move(outcome);
  }

 private:
  static bool readable(const UniqueFd& fd) {
    pollfd one{fd.get(), POLLIN, 0};
    return poll(&one, 1, 0) > 0 && (one.revents & POLLIN) != 0;
  }

  void wait() {
    std::vector<pollfd> polled;
    polled.push_back({signals.get(), POLLIN, 0});
    for (const Cell& cell : cells) polled.push_back({cell.pidFd().get(), POLLIN, 0});
    for (const auto& relay : relays) polled.push_back({relay->fd().get(), POLLIN, 0});
    if (poll(polled.data(), polled.size(), timeoutMs()) < 0 && errno != EINTR)
      failStep("supervise", "poll");

    std::size_t firstRelay = 1 + cells.size();
    // From the back, so that what is erased does not move what is still to be looked at.
    for (std::size_t i = relays.size(); i-- > 0;) {
      if (polled[firstRelay + i].revents != 0 && !relays[i]->pump())
        relays.erase(relays.begin() + static_cast<long>(i));
    }
    for (std::size_t i = cells.size(); i-- > 0;) {
      if (polled[1 + i].revents == 0) continue;
      outcome.ended.push_back({cells[i].name(), cells[i].reap()});
      cells.erase(cells.begin() + static_cast<long>(i));
      stopNext();
    }
    if ((polled[0].revents & POLLIN) != 0) {
      signalfd_siginfo info{};
      if (read(signals.get(), &info, sizeof info) == sizeof info) {
        if (outcome.ended.empty()) outcome.asked = true;
        stopNext();
      }
    }
    if (stopping && !killed && Clock::now() >= deadline) {
      killed = true;
      for (const Cell& cell : cells) {
        warn(cell.name() + ": did not end on SIGTERM; killed");
        cell.kill();
      }
    }
  }

  [[nodiscard]] int timeoutMs() const {
    if (!stopping || killed) return -1;
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    return static_cast<int>(std::max<std::chrono::milliseconds::rep>(0, left.count()));
  }

  // One after the other, the last started first: a VMM whose device goes away under it only
  // complains.
  void stopNext() {
    if (!stopping) deadline = Clock::now() + stopTimeout;
    stopping = true;
    if (!cells.empty()) cells.back().terminate();
  }

  std::vector<Cell> cells;
  std::vector<std::unique_ptr<Relay>> relays;
  const UniqueFd& signals;
  std::chrono::milliseconds stopTimeout;
  bool stopping = false;
  bool killed = false;
  Clock::time_point deadline;
  Outcome outcome;
};

}  // namespace

const Ending& Outcome::of(const std::string& name) const {
  auto found = std::find_if(ended.begin(), ended.end(),
                            [&](const Ended& each) { return each.name == name; });
  if (found == ended.end())
    throw LaunchError(Code::STEP_FAILED, "supervise", name, 0, "no such cell");
  return found->ending;
}

UniqueFd catchSignals() {
  sigset_t set = endingSignals();
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) failStep("catch-signals", "mask");
  // A closed log must not end us before our cells.
  std::signal(SIGPIPE, SIG_IGN);
  UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) failStep("catch-signals", "signalfd");
  return fd;
}

Outcome supervise(std::vector<Cell> cells, std::vector<std::unique_ptr<Relay>> relays,
                  const UniqueFd& signals, std::chrono::milliseconds stopTimeout) {
  return Supervision(std::move(cells), std::move(relays), signals, stopTimeout).run();
}

void endAs(const Ending& ending) {
  if (WIFEXITED(ending.waitStatus)) std::exit(WEXITSTATUS(ending.waitStatus));
  int signal = WTERMSIG(ending.waitStatus);
  // The other's death was the event worth a core; ours only repeats it.
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  std::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::kill(getpid(), signal);
  std::exit(128 + signal);  // a signal that does not end a process by default
}

}  // namespace cordon::launch
