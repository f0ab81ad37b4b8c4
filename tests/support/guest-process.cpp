#include "tests/support/guest-process.h"

#include <chrono>
#include <cstring>
#include <signal.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

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

}  // namespace

GuestProcess::GuestProcess(const std::string& program, const std::string& path, uid_t user)
    : binary(program), socket(path), uid(user) {
  start();
}

GuestProcess::~GuestProcess() {
  stop();
}

void GuestProcess::restart() {
  stop();
  start();
}

void GuestProcess::start() {
  const std::string listen = "unix:" + socket;
  pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (uid != ::geteuid() && (::setgid(uid) != 0 || ::setuid(uid) != 0)) ::_exit(121);
    ::execl(binary.c_str(), binary.c_str(), "--listen", listen.c_str(), nullptr);
    ::_exit(122);
  }
  // It has no way to say that it listens but to listen.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!answers(socket)) {
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) == pid) {
      pid = -1;
      throw std::runtime_error(binary + " ended with status " + std::to_string(status));
    }
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("no answer");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void GuestProcess::stop() {
  if (pid < 0) return;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  ::unlink(socket.c_str());
  pid = -1;
}

}  // namespace cordon::tests
