// Starts one command: everything between fork and exec. Source: protocols/channel.md §15.3.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

#include "services/guest/fd.h"
#include "services/guest/identity.h"

namespace cordon::guest {

// What the agent changed for itself and a command must not inherit.
struct Inherited {
  rlimit openFiles{};
  std::string oomScore;  // empty: unchanged
};

// Which step before the command's first instruction failed.
enum class SpawnStep : std::uint8_t {
  CGROUP,    // not fatal: the command runs outside of its cgroup
  SETUP,     // descriptors or the process group
  IDENTITY,  // groups, gid or uid
  CWD,       // the request's working directory, judged as the user
  EXEC,      // no candidate could be executed
};
struct SpawnReport {
  SpawnStep step;
  std::int32_t error;  // an errno
};

struct Command {
  std::vector<std::string> argv;           // not empty
  std::map<std::string, std::string> env;  // the whole environment
  std::optional<std::string>
      cwd;  // absent: the actor's home, else "/"; a relative one is below that
  Actor actor;
};

struct ChildEnds {
  Fd in;
  Fd out;
  Fd err;
};

struct Child {
  pid_t pid = -1;
  Fd reports;  // SpawnReports, then end of file when the command runs or the child is gone
};

// Forks a child in a process group of its own with default signal dispositions, an empty mask,
// umask 022, no descriptor but 0 to 2, and `cgroupProcs` (if valid) joined. 0 or an errno.
int spawn(const Command& command, const Inherited& inherited, ChildEnds ends, const Fd& cgroupProcs,
          Child& child);

}  // namespace cordon::guest
