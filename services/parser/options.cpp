#include "services/parser/options.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <sys/un.h>
#include <utility>

namespace cordon::parser {

const char* const USAGE =
    "usage: cordon-parser --role channel (--listen uds:PATH | --listen fd:N | --rpc-fd N) "
    "--sockets-dir DIR\n"
    "                     [--allow-uid UID]... [--allow-root-peer]\n"
    "       cordon-parser --role read --rpc-fd N --file-fd M\n"
    "       cordon-parser [--role channel | --role read] --print-policy\n"
    "       cordon-parser --version | --help\n"
    "\n"
    "Reads what an attacker may have written, from inside a sandbox; refuses to serve where that "
    "is "
    "not complete.\n"
    "Role channel: what the guests of one range send, for the driver (protocols/parser.capnp).\n"
    "Role read: one file of records, for `cordon read` (protocols/records.capnp, RecordFile).\n"
    "\n"
    "  --listen uds:PATH   make a listening socket there, mode 0660\n"
    "  --listen fd:N       serve on descriptor N, a listening Unix socket\n"
    "  --rpc-fd N          serve the one connection that descriptor N is, then end\n"
    "  --file-fd M         the file to read: a regular one, open for reading only\n"
    "  --sockets-dir DIR   a guest is dialled at DIR/<cid>/vsock.sock\n"
    "  --allow-uid UID     who may connect to the listening socket; without it, the own uid\n"
    "  --allow-root-peer   a guest's socket may be held by root (tests)\n"
    "  --print-policy      print the seccomp policy of the role (channel, where none is named), "
    "one "
    "call a line,\n"
    "                      and its hash\n";

namespace {

template <typename Number>
std::optional<Number> readNumber(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<int> readFd(std::string_view text) {
  const auto fd = readNumber<int>(text);
  // 0 to 2 are no sockets of a service.
  if (!fd || *fd < 3) return std::nullopt;
  return fd;
}

bool isAbsolutePath(std::string_view path) {
  return path.size() >= 2 && path.front() == '/' && path.back() != '/';
}

std::optional<Listening> readListening(std::string_view value) {
  constexpr std::string_view UDS = "uds:";
  constexpr std::string_view FD = "fd:";
  if (value.starts_with(UDS)) {
    const std::string_view path = value.substr(UDS.size());
    if (!isAbsolutePath(path) || path.size() >= sizeof(sockaddr_un::sun_path)) return std::nullopt;
    return ListenAtPath{std::string(path)};
  }
  if (!value.starts_with(FD)) return std::nullopt;
  const auto fd = readFd(value.substr(FD.size()));
  if (!fd) return std::nullopt;
  return ListenOnFd{*fd};
}

// The words of a command line, read once from front to back.
class Reader {
 public:
  explicit Reader(const std::vector<std::string>& words) : arguments(words) {}

  Options read() {
    while (next < arguments.size() && error.empty()) readOne(arguments[next++]);
    Options result = decide();
    if (!error.empty()) return UsageError{error};
    return result;
  }

 private:
  void readOne(const std::string& option) {
    given.insert(option);
    if (option == "--role") {
      once(role, option, value(option));
    } else if (option == "--listen") {
      setListening(option, readListening(value(option)));
    } else if (option == "--rpc-fd") {
      const auto fd = readFd(value(option));
      setListening(option, fd ? std::optional<Listening>(ServeFd{*fd}) : std::nullopt);
    } else if (option == "--file-fd") {
      const auto fd = readFd(value(option));
      if (!fd) return fail(option + ": not a descriptor above 2");
      once(fileFd, option, *fd);
    } else if (option == "--sockets-dir") {
      once(socketsDirectory, option, value(option));
    } else if (option == "--allow-root-peer") {
      options.allowRootPeer = true;
    } else if (option == "--allow-uid") {
      const auto uid = readNumber<uid_t>(value(option));
      if (!uid || *uid == std::numeric_limits<uid_t>::max()) return fail(option + ": not a uid");
      options.allowedUids.insert(*uid);
    } else if (option != "--print-policy") {
      fail("unknown option " + option);
    }
  }

  std::string value(const std::string& option) {
    if (next < arguments.size()) return arguments[next++];
    fail(option + ": a value is missing");
    return {};
  }
  template <typename Value>
  void once(std::optional<Value>& target, const std::string& option, Value taken) {
    if (target) return fail(option + ": given twice");
    target = std::move(taken);
  }
  void setListening(const std::string& option, std::optional<Listening> taken) {
    if (listening) return fail(option + ": one of --listen and --rpc-fd, once");
    if (!taken) return fail(option + ": neither uds:/PATH nor a descriptor above 2");
    listening = std::move(taken);
  }

  Options decide() {
    const bool isRead = role == "read";
    if (role && !isRead && role != "channel") fail("--role: neither channel nor read");
    if (given.contains("--print-policy")) {
      allowOnly({"--role", "--print-policy"}, "--print-policy");
      return PrintPolicy{isRead ? Role::READ : Role::CHANNEL};
    }
    if (!role) fail("--role channel or --role read is required");
    if (isRead) return decideRead();
    return decideChannel();
  }
  Options decideRead() {
    allowOnly({"--role", "--rpc-fd", "--file-fd"}, "--role read");
    if (!listening) fail("--rpc-fd is required");
    if (!fileFd) fail("--file-fd is required");
    if (!error.empty()) return {};
    const ReadOptions read{.rpcFd = std::get<ServeFd>(*listening).fd, .fileFd = *fileFd};
    if (read.rpcFd == read.fileFd) fail("--file-fd: the same descriptor as --rpc-fd");
    return read;
  }
  Options decideChannel() {
    if (fileFd) fail("--file-fd: not with --role channel");
    if (!listening) fail("--listen or --rpc-fd is required");
    if (!socketsDirectory) fail("--sockets-dir is required");
    if (!error.empty()) return {};
    if (!isAbsolutePath(*socketsDirectory))
      fail("--sockets-dir: not an absolute path without a slash at its end");
    if (socketsDirectory->size() + sizeof("/65535/vsock.sock") > sizeof(sockaddr_un::sun_path)) {
      fail("--sockets-dir: too long for the sockets below it");
    }
    options.listening = *listening;
    options.socketsDirectory = *socketsDirectory;
    return options;
  }

  void allowOnly(const std::set<std::string>& allowed, const std::string& with) {
    const auto foreign = std::find_if(given.begin(), given.end(), [&](const std::string& option) {
      return !allowed.contains(option);
    });
    if (foreign != given.end()) fail(*foreign + ": not with " + with);
  }
  void fail(std::string text) {
    if (error.empty()) error = std::move(text);
  }

  const std::vector<std::string>& arguments;
  std::size_t next = 0;
  std::string error;
  std::set<std::string> given;
  ServeOptions options;
  std::optional<std::string> role;
  std::optional<std::string> socketsDirectory;
  std::optional<Listening> listening;
  std::optional<int> fileFd;
};

}  // namespace

Options parseOptions(const std::vector<std::string>& arguments) {
  if (arguments.size() == 1) {
    if (arguments[0] == "--version") return PrintVersion{};
    if (arguments[0] == "--help") return PrintHelp{};
  }
  return Reader(arguments).read();
}

}  // namespace cordon::parser
