// What a test that is killed leaves behind, and how the next run is rid of it. Everything made here
// carries the pid of its maker in its name; what is swept is that whose maker is gone, and nothing
// else.
#pragma once

#include <csignal>
#include <string>
#include <sys/types.h>

namespace cordon::tests {

// Makes /tmp/<name>-<own pid>-XXXXXX, mode 0700, once those of this name whose makers are gone are
// removed. Throws std::runtime_error.
std::string makeOwnedDirectory(const std::string& name);
// The same in another directory than /tmp.
std::string makeOwnedDirectory(const std::string& parent, const std::string& name);

// To be called in a child last before its exec (a change of uid would undo it): from then on it
// gets `signal` when the thread that forked it ends, which must therefore not be one of less life
// than the child. parent: getpid() before the fork; the child ends at once where it is gone
// already.
void dieWith(pid_t parent, int signal = SIGKILL);

// An agent (cordon-guest) whose pid this was and which is dead leaves its commands running, each in
// its cgroup. Ends them and removes the cgroups; nothing where there is no cgroup v2.
void endCommandsOf(pid_t agent);
// The same for each agent that is gone, whoever started it.
void endCommandsOfTheGone();

}  // namespace cordon::tests
