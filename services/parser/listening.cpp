#include "services/parser/listening.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace cordon::parser {
namespace {

constexpr int BACKLOG = 16;
constexpr int SOCKET_FLAGS = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

using Result = std::variant<Endpoint, ListenFailure>;

ListenFailure failed(const char* step) {
  return {.error = ListenError::SYSTEM, .step = step, .errnoValue = errno};
}

sockaddr_un addressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

template <typename Call>
int withAddress(Call call, int socket, const std::string& path) {
  const sockaddr_un address = addressOf(path);
  return call(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

// Removes a socket that nobody serves. Nothing: the path is free now.
std::optional<ListenFailure> removeStale(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return std::nullopt;
    return failed("lstat");
  }
  if (!S_ISSOCK(status.st_mode))
    return ListenFailure{.error = ListenError::NO_SOCKET, .step = "lstat"};
  const kj::AutoCloseFd probe(::socket(AF_UNIX, SOCKET_FLAGS, 0));
  if (probe.get() < 0) return failed("socket");
  // EAGAIN: a full backlog, so somebody listens.
  if (withAddress(::connect, probe, path) == 0 || errno != ECONNREFUSED) {
    return ListenFailure{.error = ListenError::LIVE_SOCKET, .step = "connect"};
  }
  if (::unlink(path.c_str()) != 0) return failed("unlink");
  return std::nullopt;
}

Result listenAt(const std::string& path) {
  const std::string lockPath = path + ".lock";
  kj::AutoCloseFd lock(::open(lockPath.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock.get() < 0) return failed("open lock");
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      return ListenFailure{.error = ListenError::LIVE_SOCKET, .step = "flock"};
    return failed("flock");
  }
  if (const auto failure = removeStale(path)) return *failure;
  kj::AutoCloseFd socket(::socket(AF_UNIX, SOCKET_FLAGS, 0));
  if (socket.get() < 0) return failed("socket");
  // By umask and not by chmod: there is no moment in which the mode is another.
  const mode_t before = ::umask(0117);
  const int bound = withAddress(::bind, socket, path);
  const int error = errno;
  ::umask(before);
  errno = error;
  if (bound != 0) return failed("bind");
  if (::listen(socket, BACKLOG) != 0) return failed("listen");
  return Endpoint{.socket = kj::mv(socket), .lock = kj::mv(lock), .isListener = true};
}

std::optional<int> socketOption(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof(value);
  if (::getsockopt(fd, SOL_SOCKET, option, &value, &size) != 0) return std::nullopt;
  return value;
}

Result adopt(int fd, bool isListener) {
  const bool isRight = socketOption(fd, SO_DOMAIN) == AF_UNIX &&
                       socketOption(fd, SO_TYPE) == SOCK_STREAM &&
                       socketOption(fd, SO_ACCEPTCONN) == (isListener ? 1 : 0);
  if (!isRight) return ListenFailure{.error = ListenError::WRONG_SOCKET, .step = "getsockopt"};
  kj::AutoCloseFd socket(fd);
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return failed("F_SETFD");
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return failed("F_SETFL");
  return Endpoint{.socket = kj::mv(socket), .lock = nullptr, .isListener = isListener};
}

}  // namespace

std::string describe(const ListenFailure& failure) {
  switch (failure.error) {
    case ListenError::LIVE_SOCKET:
      return "live-socket";
    case ListenError::NO_SOCKET:
      return "no-socket";
    case ListenError::WRONG_SOCKET:
      return "wrong-socket";
    case ListenError::SYSTEM:
      break;
  }
  return std::string("system ") + failure.step + " " + ::strerrorname_np(failure.errnoValue);
}

std::variant<Endpoint, ListenFailure> openEndpoint(const Listening& listening) {
  if (const auto* path = std::get_if<ListenAtPath>(&listening)) return listenAt(path->path);
  if (const auto* fd = std::get_if<ListenOnFd>(&listening)) return adopt(fd->fd, true);
  return adopt(std::get<ServeFd>(listening).fd, false);
}

}  // namespace cordon::parser
