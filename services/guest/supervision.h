// One running command: its pipes, its end, its killing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "services/guest/cgroups.h"
#include "services/guest/fd.h"
#include "services/guest/spawn.h"
#include "services/guest/spool.h"

namespace cordon::guest {

// What a command wrote to one stream.
class Capture {
 public:
  Capture(Fd readEnd, std::size_t keep, std::size_t keepOfTail)
      : pipe(std::move(readEnd)), limit(keep), tailLimit(keepOfTail) {}

  // Reads once, without waiting. An error of keeping stands in kept().error(); reading goes on all
  // the same, since a command must not block on output that no one wants.
  void drain(std::byte* piece, std::size_t size);
  [[nodiscard]] bool open() const { return pipe.valid(); }
  [[nodiscard]] int descriptor() const { return pipe.get(); }
  [[nodiscard]] bool truncated() const { return cut; }
  // The last bytes of the stream itself, not of what was kept.
  [[nodiscard]] const std::string& tail() const { return last; }
  [[nodiscard]] Spool& kept() { return bytes; }

 private:
  Fd pipe;
  std::size_t limit;
  std::size_t tailLimit;
  Spool bytes{Spool::IN_MEMORY};
  std::string last;
  bool cut = false;
};

class Supervision {
 public:
  // `feed` is absent where the command has no stdin of ours; else it gets `bytes`. The child leads
  // a process group.
  Supervision(Child started, std::optional<Fd> feed, const Spool& bytes, Capture out, Capture err,
              const ExecCgroup* joined, std::int64_t untilMs);

  // Until the command has ended and its pipes are closed or WAIT_DELAY has passed, or the deadline
  // has and everything was killed.
  void run();

  [[nodiscard]] bool timedOut() const { return phase != Phase::RUNNING; }
  // A process that KILL does not end within WAIT_DELAY is stuck in the kernel.
  [[nodiscard]] bool ended() const { return mainEnded; }
  // KILL reached the whole cgroup, not only the process group.
  [[nodiscard]] bool killedCgroup() const { return cgroupKilled; }
  [[nodiscard]] const std::vector<SpawnReport>& reports() const { return spawnReports; }
  [[nodiscard]] pid_t pid() const { return child.pid; }
  Capture& output() { return standardOut; }
  Capture& errors() { return standardErr; }
  // Collects the ended process: its exit code, or minus the number of the signal that killed it.
  int reap();

 private:
  enum class Phase : std::uint8_t { RUNNING, TERMINATING, KILLED };

  [[nodiscard]] bool finished(std::int64_t now);
  void advance(std::int64_t now);
  void waitForEvent(std::int64_t now);
  void readReports();
  void feedInput();
  void checkMain();
  void signalGroup(int signal) const;
  [[nodiscard]] bool anythingLives() const;

  Child child;
  Fd handle;  // a pidfd; invalid on an old kernel
  std::optional<Fd> in;
  const Spool& input;
  std::uint64_t fed = 0;
  Capture standardOut;
  Capture standardErr;
  const ExecCgroup* cgroup;
  std::int64_t deadlineMs;
  std::int64_t phaseEndMs = 0;  // of TERMINATING and KILLED
  std::int64_t drainEndMs = 0;  // set once the main process ended
  Phase phase = Phase::RUNNING;
  bool mainEnded = false;
  bool cgroupKilled = false;
  std::vector<SpawnReport> spawnReports;
  std::unique_ptr<std::byte[]> scratch;
};

}  // namespace cordon::guest
