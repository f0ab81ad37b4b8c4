// The command line of cordon-parser.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <sys/types.h>
#include <variant>
#include <vector>

namespace cordon::parser {

struct ListenAtPath {
  std::string path;  // absolute, fits sun_path
};
struct ListenOnFd {
  int fd = -1;  // a listening Unix socket that was inherited
};
struct ServeFd {
  int fd = -1;  // one end of a connected Unix socket: who holds the other end may call
};
using Listening = std::variant<ListenAtPath, ListenOnFd, ServeFd>;

struct ServeOptions {
  Listening listening;
  std::string socketsDirectory;  // absolute, no slash at its end
  bool allowRootPeer = false;    // guests' sockets may be held by uid 0 (tests)
  std::set<uid_t> allowedUids;   // who may connect to the listener; empty: the parser's own uid
};
// Role read: one file for one caller.
struct ReadOptions {
  int rpcFd = -1;   // one end of a connected Unix socket: who holds the other end may call
  int fileFd = -1;  // of the file to read
};
enum class Role : std::uint8_t { CHANNEL, READ };
struct PrintPolicy {
  Role role = Role::CHANNEL;
};
struct PrintVersion {};
struct PrintHelp {};
// One line for people: what is wrong with the command line.
struct UsageError {
  std::string text;
};
using Options =
    std::variant<ServeOptions, ReadOptions, PrintPolicy, PrintVersion, PrintHelp, UsageError>;

extern const char* const USAGE;

// `arguments` without the program's name.
Options parseOptions(const std::vector<std::string>& arguments);

}  // namespace cordon::parser
