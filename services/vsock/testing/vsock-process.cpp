#include "services/vsock/testing/vsock-process.h"

#include <csignal>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cordon::vsock::testing {
namespace {

[[noreturn]] void becomeDevice(const char* binary, int vhostUser, int listener,
                               const std::string& cid) {
  constexpr uid_t NOBODY = 64997;
  bool fine = ::unshare(CLONE_NEWNET) == 0;
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    fine = fine && ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0;
  }
  fine = fine && ::setgroups(0, nullptr) == 0 && ::setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
         ::setresuid(NOBODY, NOBODY, NOBODY) == 0;
  fine = fine && ::fcntl(vhostUser, F_SETFD, 0) == 0 && ::fcntl(listener, F_SETFD, 0) == 0;
  if (fine) {
    const std::string first = std::to_string(vhostUser);
    const std::string second = std::to_string(listener);
    ::execl(binary, "cordon-vsock", "--vhost-user-fd", first.c_str(), "--listen-fd", second.c_str(),
            "--cid", cid.c_str(), nullptr);
  }
  ::_exit(99);
}

}  // namespace

VsockProcess::VsockProcess(const char* binary, FrontEndPeer& peer, const std::string& cid) {
  static int counter = 0;
  address.sun_family = AF_UNIX;
  const std::string name =
      "/tmp/cordon-vsock-" + std::to_string(::getpid()) + "-" + std::to_string(++counter);
  name.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ::unlink(name.c_str());
  Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  require(
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
          ::listen(listener.get(), 128) == 0,
      "listen");
  pid = ::fork();
  require(pid >= 0, "fork");
  if (pid == 0) becomeDevice(binary, peer.backEnd.get(), listener.get(), cid);
  peer.backEnd.reset();
}

VsockProcess::~VsockProcess() {
  if (pid > 0) {
    ::kill(pid, SIGKILL);
    wait();
  }
  ::unlink(address.sun_path);
}

Fd VsockProcess::dial() const {
  Fd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  require(
      ::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0,
      "dial");
  return client;
}

int VsockProcess::wait() {
  int status = 0;
  ::waitpid(pid, &status, 0);
  pid = -1;
  return status;
}

}  // namespace cordon::vsock::testing
