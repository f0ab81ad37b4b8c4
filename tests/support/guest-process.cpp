#include "tests/support/guest-process.h"

#include <chrono>
#include <cstring>
#include <signal.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "tests/support/residue.h"

namespace cordon::tests {
namespace {

bool answers(const std::string& path) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (path.size() >= sizeof(to.sun_path)) throw std::runtime_error("socket path too long");
  std::memcpy(to.sun_path, path.data(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected = ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0;
  ::close(fd);
  return connected;
}

void end(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace

GuestProcess::GuestProcess(const std::string& program, const std::string& path, uid_t user)
    : binary(program), socket(path), uid(user) {
  endCommandsOfTheGone();
  pid = start(path);
}

GuestProcess::~GuestProcess() {
  end(pid);
  for (const pid_t one : started) endCommandsOf(one);
}

void GuestProcess::restart() {
  const std::string next = socket + ".next";
  const pid_t other = start(next);
  if (::rename(next.c_str(), socket.c_str()) != 0) throw std::runtime_error("rename");
  end(std::exchange(pid, other));
}

pid_t GuestProcess::start(const std::string& path) {
  const std::string listen = "unix:" + path;
  const pid_t parent = ::getpid();
  const bool outlivesChild = std::this_thread::get_id() == maker;
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    if (uid != ::geteuid() && (::setgid(uid) != 0 || ::setuid(uid) != 0)) ::_exit(121);
    if (outlivesChild) dieWith(parent);
    ::execl(binary.c_str(), binary.c_str(), "--listen", listen.c_str(), nullptr);
    ::_exit(122);
  }
  started.push_back(child);
  // It has no way to say that it listens but to listen.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!answers(path)) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child)
      throw std::runtime_error(binary + " ended with status " + std::to_string(status));
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("no answer");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return child;
}

}  // namespace cordon::tests
