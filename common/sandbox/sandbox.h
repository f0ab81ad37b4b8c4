#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/sandbox/policy.h"

// How a service confines itself before it serves. For single-threaded programs, with or without KJ:
// a filter holds for the calling thread and for what it starts later.
namespace cordon::sandbox {

// Resource limits, soft and hard alike where nothing else is said. Core dumps are always forbidden.
struct Limits {
  std::uint64_t openFiles = 256;  // descriptors; 0 would break poll and descriptor passing
  std::uint64_t processes = 0;
  // Bytes that one file may grow to; pipes and sockets are not files. With 0 a service whose log
  // goes to a regular file dies of SIGXFSZ at its first line: give it a pipe.
  std::uint64_t fileSize = 0;
  std::uint64_t lockedMemory = 0;
  // Bytes of address space. A build with AddressSanitizer skips it (its shadow needs terabytes);
  // see `hasMemoryLimit`.
  std::optional<std::uint64_t> addressSpace = std::nullopt;
  // Seconds of processor time, for a service that does one piece of work: over it the kernel ends
  // it by SIGXCPU, which tells whoever started it what happened. The hard limit, one second later,
  // is SIGKILL, should the signal be of no effect.
  std::optional<std::uint64_t> processorSeconds = std::nullopt;
};

// Whether Limits::addressSpace has an effect in this build.
bool hasMemoryLimit();

struct Confinement {
  const Policy& policy;
  Limits limits;
  // An inherited descriptor of this process's own /proc/self/status, for a view without /proc; else
  // it is opened. Closed by enter().
  std::optional<int> statusFd;
  // Accepts supplementary groups that it may not drop: in a user namespace that an unprivileged
  // user made, nobody may (user_namespaces(7), setgroups "deny"). For a policy that opens nothing
  // and connects to nothing, since a group only counts where something is opened.
  bool keepsForeignGroups = false;
};

// What enter() does, in this order; each is also what a Failure names. VERIFY_ steps read back what
// the kernel says.
enum class Step {
  REFUSE_ROOT,
  OPEN_STATUS,
  COUNT_FILTERS,
  DROP_GROUPS,
  ISOLATE_NETWORK,
  LIMIT_CORE,
  LIMIT_OPEN_FILES,
  LIMIT_PROCESSES,
  LIMIT_FILE_SIZE,
  LIMIT_LOCKED_MEMORY,
  LIMIT_ADDRESS_SPACE,
  LIMIT_PROCESSOR_TIME,
  CLEAR_AMBIENT,
  CLEAR_BOUNDING,
  CLEAR_CAPABILITIES,
  FORBID_NEW_PRIVILEGES,
  BECOME_UNDUMPABLE,
  LOAD_FILTER,
  VERIFY_STATUS,
  VERIFY_UIDS,
  VERIFY_GIDS,
  VERIFY_GROUPS,
  VERIFY_INHERITABLE,
  VERIFY_PERMITTED,
  VERIFY_EFFECTIVE,
  VERIFY_BOUNDING,
  VERIFY_AMBIENT,
  VERIFY_NO_NEW_PRIVILEGES,
  VERIFY_SECCOMP,
  VERIFY_FILTER_COUNT,
};

struct Failure {
  Step step;
  // errno of the call that failed; 0 if it succeeded and what it says is not acceptable.
  int error = 0;
  // What was found instead, as the step's own number: a uid, a mask, a count.
  std::uint64_t found = 0;
};

// Confines the calling process for good, and checks from inside that it is confined. Nothing on
// success.
//
// Refuses user and group 0, supplementary groups beyond its own group (but see
// keepsForeignGroups), a network namespace with
// anything but a `lo` that is down (it makes a new one if it may), capabilities in any of the five
// sets, and a filter that was not added. After a failure the process may be confined in part: print
// describe() and exit; never serve.
//
// Call it after everything that needs more than the policy's stage "run": opened descriptors, the
// event loop, whatever libraries load lazily. It needs /proc/self/status (or Confinement::statusFd)
// and one descriptor until it returns.
[[nodiscard]] std::optional<Failure> enter(const Confinement& confinement);

// One line without a line feed: the step, what was found, errno's text. For the service's own log.
std::string describe(const Failure& failure);

// The step's name in lower case with dashes, e.g. "verify-bounding".
const char* nameOf(Step step);

// What --print-policy prints: the expanded text and "sha256 HASH".
std::string printable(const Policy& policy);

// Loads one filter for the calling thread. `no_new_privs` must be set, or CAP_SYS_ADMIN held.
// Nothing on success, errno otherwise. For a service's stage "boot" and for launchers; enter()
// loads stage "run" itself.
[[nodiscard]] std::optional<int> loadFilter(std::span<const sock_filter> program);

}  // namespace cordon::sandbox
