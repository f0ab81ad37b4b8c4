// What a child of ours does between fork and exec to become the parser that reads a file.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>

namespace cordon::cli {

// In the order in which becomeReader() does it. UNUSED_UID and MAKE_PIPES are the parent's.
enum class StartStep : std::uint8_t {
  MAKE_PIPES,
  UNUSED_UID,
  FORK,
  OPEN_BINARY,
  DIE_WITH_CALLER,
  PLACE_DESCRIPTORS,
  MAKE_NAMESPACES,
  MAP_IDENTITY,
  DROP_GROUPS,
  DROP_BOUNDING,
  CHANGE_IDENTITY,
  DROP_CAPABILITIES,
  FORBID_NEW_PRIVILEGES,
  EXECUTE,
};

// Written by the child where it could not become the reader.
struct StartFailure {
  StartStep step = StartStep::FORK;
  int error = 0;  // errno; 0 where no call failed
};

// One or two sentences for the caller: what failed and the remedy.
std::string describe(const StartFailure& failure);

struct ReaderPlan {
  std::string binary;
  int rpcFd = -1;     // becomes descriptor 3 of the parser
  int fileFd = -1;    // becomes 4
  int logFd = -1;     // becomes 2, its standard error
  int reportFd = -1;  // a StartFailure goes there; closed by exec
  pid_t caller = -1;  // dies with it
  // As root: who it becomes. Else nothing: it stays the caller, in a user namespace of its own.
  uid_t uid = 0;
};

// Executes the parser with no right but its descriptors: no environment, no other descriptor,
// default signals, an empty network namespace, no group, no capability in any set, no way to gain
// one. For a single-threaded process right after fork(). Exits with 127 where it cannot.
[[noreturn]] void becomeReader(const ReaderPlan& plan);

}  // namespace cordon::cli
