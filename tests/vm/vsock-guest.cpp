// What runs in the guest of the vsock tests, in the agent's place: a listener that hands each connection on a port of
// the table to a program of the image, as standard input and output.
#include <sys/socket.h>
#include <sys/wait.h>

#include <linux/vm_sockets.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace {

struct Service {
  unsigned port;
  const char* command;  // for /bin/sh
};

constexpr char RELOAD[] =
    "echo reloading; exec >/dev/console 2>&1 </dev/null; "
    "(sleep 1; rmmod vmw_vsock_virtio_transport && insmod /lib/modules/vmw_vsock_virtio_transport.ko; "
    "echo vsock-guest: reloaded $?) &";
constexpr char REBIND[] =
    "echo rebinding; exec >/dev/console 2>&1 </dev/null; "
    "(sleep 1; cd /sys/bus/virtio/drivers/vmw_vsock_virtio_transport && device=$(ls -d virtio*) && "
    "echo $device >unbind && echo $device >bind; echo vsock-guest: rebound $?) &";

constexpr std::array SERVICES = {
    Service{7000, "exec cat"},
    Service{7001, "exec sha256sum"},
    Service{7002, "yes cordon | head -c 67108864"},
    Service{7003, RELOAD},
    Service{7004, REBIND},
    Service{7005, nullptr},  // dials the host
    Service{7006, "exec sleep 1000"},
};

int listenOn(unsigned port) {
  const int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_vm address{};
  address.svm_family = AF_VSOCK;
  address.svm_port = port;
  address.svm_cid = VMADDR_CID_ANY;
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 || listen(fd, 64) != 0) {
    perror("vsock-guest: listen");
    return -1;
  }
  return fd;
}

// Says which error a connection to the host ended with.
void dialHost(int out) {
  const int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_vm address{};
  address.svm_family = AF_VSOCK;
  address.svm_port = 1234;
  address.svm_cid = VMADDR_CID_HOST;
  const int result = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  dprintf(out, "%s\n", result == 0 ? "connected" : strerrorname_np(errno));
}

void serve(int connection, const Service& service) {
  if (fork() != 0) return;
  signal(SIGCHLD, SIG_DFL);
  if (service.command == nullptr) {
    dialHost(connection);
    _exit(0);
  }
  dup2(connection, 0);
  dup2(connection, 1);
  execl("/bin/sh", "sh", "-c", service.command, nullptr);
  _exit(127);
}

}  // namespace

int main() {
  signal(SIGCHLD, SIG_IGN);
  std::array<pollfd, SERVICES.size()> listeners{};
  for (std::size_t i = 0; i < SERVICES.size(); ++i) {
    listeners[i] = {listenOn(SERVICES[i].port), POLLIN, 0};
    if (listeners[i].fd < 0) {
      sleep(1);
      return 1;
    }
  }
  printf("vsock-guest: ready\n");
  fflush(stdout);
  for (;;) {
    if (poll(listeners.data(), listeners.size(), -1) < 0) continue;
    for (std::size_t i = 0; i < SERVICES.size(); ++i) {
      if ((listeners[i].revents & POLLIN) == 0) continue;
      const int connection = accept4(listeners[i].fd, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) continue;
      serve(connection, SERVICES[i]);
      close(connection);
    }
  }
}
