// The real cordon-vsock, started as a launcher does it: an unprivileged uid, no capabilities, an
// empty network namespace, two descriptors. Needs root.
#pragma once

#include <string>
#include <sys/types.h>
#include <sys/un.h>

#include "services/vsock/testing/front-end-peer.h"

namespace cordon::vsock::testing {

class VsockProcess {
 public:
  // Takes the peer's device end. `binary` is the program's path.
  VsockProcess(const char* binary, FrontEndPeer& peer, const std::string& cid = "10000");
  VsockProcess(const VsockProcess&) = delete;
  ~VsockProcess();

  Fd dial() const;
  // Its wait status.
  int wait();
  pid_t id() const { return pid; }

 private:
  pid_t pid = -1;
  sockaddr_un address{};
};

}  // namespace cordon::vsock::testing
