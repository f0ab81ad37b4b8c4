// A cgroup of its own for each command, where the guest has a writable cgroup v2, so that a process
// that left the process group (setsid) dies with its command all the same.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "services/guest/diag-ring.h"
#include "services/guest/fd.h"

namespace cordon::guest {

// The cgroup of a command is <agent's own cgroup>/cordon-exec-<agent's pid>-<number>.
inline constexpr std::string_view EXEC_CGROUP_PREFIX = "cordon-exec-";

// The directory of the calling process's own cgroup v2; empty where there is none.
std::string ownCgroup();

// One command's cgroup. Destroyed with the command; what still lives in it (a background child of a
// command that ended by itself) is left alone.
class ExecCgroup {
 public:
  ExecCgroup(std::string made, Fd opened) : path(std::move(made)), directory(std::move(opened)) {}

  // Where a process that wants in writes "0".
  [[nodiscard]] Fd openProcs() const;
  // Something in it runs. A zombie does not count.
  [[nodiscard]] bool populated() const;
  // TERM to each process in it.
  void terminate() const;
  // KILL to each, without a gap for a fork. False: some may have outrun it.
  [[nodiscard]] bool kill() const;
  [[nodiscard]] const std::string& where() const { return path; }

 private:
  [[nodiscard]] std::vector<pid_t> processes() const;

  std::string path;
  Fd directory;
};

class Cgroups {
 public:
  // Looks for the agent's own cgroup v2 and whether it may make children there; if not, says so in
  // an entry `cgroup-unavailable`: then only process groups are killed.
  explicit Cgroups(DiagRing& diag);

  // Nothing where there is no cgroup v2, or making one failed.
  std::optional<ExecCgroup> make();
  // Removes it, or remembers to do so once it is empty.
  void release(ExecCgroup cgroup);

 private:
  void sweep();  // with the lock held

  std::string base;  // empty: no cgroup v2
  std::atomic<unsigned long> counter = 0;
  std::mutex mutex;
  std::vector<std::string> leftovers;
};

}  // namespace cordon::guest
