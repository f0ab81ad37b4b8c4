// cordon-vsock: the virtio-vsock device of one guest. Runs as that guest's uid and is presumed lost
// with it.
//
//   cordon-vsock --vhost-user-fd N --listen-fd M --cid C
//   cordon-vsock --print-policy
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <optional>
#include <span>
#include <string_view>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/log/log.h"
#include "common/sandbox/sandbox.h"
#include "policy/compiled/vsock.h"
#include "services/vsock/log.h"
#include "services/vsock/server.h"

namespace {

using cordon::log::Level;
using cordon::vsock::BoundedLog;
using cordon::vsock::Server;
using cordon::vsock::ServerOptions;

constexpr std::uint64_t FIRST_GUEST_CID = 3;
constexpr std::uint64_t LAST_GUEST_CID = 65535;
constexpr rlim_t OTHER_DESCRIPTORS =
    64;  // besides clients: standard streams, the log, sockets, rings, a memory table on its way

template <typename T>
bool parseNumber(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

std::optional<ServerOptions> readArguments(std::span<char*> arguments) {
  ServerOptions options;
  if (arguments.size() != 7) return std::nullopt;
  for (std::size_t i = 1; i < arguments.size(); i += 2) {
    const std::string_view key = arguments[i];
    const std::string_view value = arguments[i + 1];
    if (key == "--vhost-user-fd" && options.vhostUser < 0) {
      if (!parseNumber(value, options.vhostUser) || options.vhostUser < 3) return std::nullopt;
    } else if (key == "--listen-fd" && options.listener < 0) {
      if (!parseNumber(value, options.listener) || options.listener < 3) return std::nullopt;
    } else if (key == "--cid" && options.cid == 0) {
      if (!parseNumber(value, options.cid) || options.cid < FIRST_GUEST_CID ||
          options.cid > LAST_GUEST_CID) {
        return std::nullopt;
      }
    } else {
      return std::nullopt;
    }
  }
  if (options.vhostUser == options.listener) return std::nullopt;
  return options;
}

bool hasOption(int descriptor, int option, int expected) {
  int value = -1;
  socklen_t size = sizeof(value);
  return ::getsockopt(descriptor, SOL_SOCKET, option, &value, &size) == 0 && value == expected;
}

// Both are Unix stream sockets, one connected and one listening; a slip of whoever starts us must
// not become a service on the wrong one.
bool checkDescriptors(const ServerOptions& options) {
  for (const int each : {options.vhostUser, options.listener}) {
    if (!hasOption(each, SO_DOMAIN, AF_UNIX) || !hasOption(each, SO_TYPE, SOCK_STREAM))
      return false;
    const int flags = ::fcntl(each, F_GETFL);
    if (flags < 0 || ::fcntl(each, F_SETFL, flags | O_NONBLOCK) != 0) return false;
  }
  return hasOption(options.vhostUser, SO_ACCEPTCONN, 0) &&
         hasOption(options.listener, SO_ACCEPTCONN, 1);
}

// A closed client must not end the process, and an order to stop is to be seen between two turns.
bool takeSignals(ServerOptions& options) {
  if (std::signal(SIGPIPE, SIG_IGN) == SIG_ERR) return false;
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGTERM);
  sigaddset(&stops, SIGINT);
  if (::sigprocmask(SIG_BLOCK, &stops, nullptr) != 0) return false;
  options.signals = ::signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK);
  return options.signals >= 0;
}

// As many clients as there can be descriptors for: accept() never runs out of them then.
bool fitLimits(ServerOptions& options) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  if (limit.rlim_max <= OTHER_DESCRIPTORS) {
    errno = EMFILE;
    return false;
  }
  options.limits.connections =
      std::min<std::size_t>(options.limits.connections, limit.rlim_max - OTHER_DESCRIPTORS);
  return true;
}

// Nothing of the front end's or a client's is read before this, and nothing but serving is possible
// after it.
bool enterSandbox(const ServerOptions& options, BoundedLog& log) {
  cordon::sandbox::Limits limits;
  limits.openFiles = options.limits.connections + OTHER_DESCRIPTORS;
  // No limit of the address space: the guest's memory counts in it. Ours is bounded by Limits, and
  // both by the cgroup.
  const auto failure = cordon::sandbox::enter({cordon::policy::VSOCK, limits, {}});
  if (!failure) return true;
  log.always(Level::ERROR, "sandbox.failed", {{"why", cordon::sandbox::describe(*failure)}});
  return false;
}

}  // namespace

#ifdef CORDON_SANITIZED
// The leak check wants to clone and trace, which the policy kills; the tests of the parts have it.
// NOLINTBEGIN(bugprone-reserved-identifier): the name is the sanitizer's.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0";
}
// NOLINTEND(bugprone-reserved-identifier)
#endif

int main(int argc, char** argv) {
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  if (arguments.size() == 2 && std::string_view(arguments[1]) == "--print-policy") {
    std::fputs(cordon::sandbox::printable(cordon::policy::VSOCK).c_str(), stdout);
    return 0;
  }
  BoundedLog log(cordon::log::Log::forService("cordon-vsock"));
  std::optional<ServerOptions> options = readArguments(arguments);
  if (!options) {
    log.always(Level::ERROR, "arguments.refused",
               {{"usage", "--vhost-user-fd N --listen-fd M --cid C"}});
    return 2;
  }
  if (!checkDescriptors(*options)) {
    log.always(Level::ERROR, "descriptors.refused");
    return 2;
  }
  if (!takeSignals(*options) || !fitLimits(*options)) {
    log.always(Level::ERROR, "start.failed", {{"errno", errno}});
    return 2;
  }
  Server server(*options, log);
  if (!server.watch()) {
    log.always(Level::ERROR, "watch.failed", {{"errno", errno}});
    return 2;
  }
  if (!enterSandbox(*options, log)) return 2;
  log.always(Level::INFO, "service.serving",
             {{"cid", options->cid},
              {"connections", options->limits.connections},
              {"policy", cordon::policy::VSOCK.shortHash()}});
  return server.run();
}
