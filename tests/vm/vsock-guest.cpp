// What runs in the guest of the vsock tests, in the agent's place: a listener with one small
// service a port.
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <linux/vm_sockets.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace {

// A module that a listener is bound through can be taken out: only connections hold it.
constexpr const char* RELOAD =
    "exec >/dev/console 2>&1 </dev/null; sleep 1; "
    "rmmod vmw_vsock_virtio_transport && insmod /lib/modules/vmw_vsock_virtio_transport.ko; "
    "echo vsock-guest: reloaded $?";
constexpr const char* REBIND =
    "exec >/dev/console 2>&1 </dev/null; sleep 1; "
    "cd /sys/bus/virtio/drivers/vmw_vsock_virtio_transport && device=$(echo virtio*) && "
    "echo $device >unbind && echo $device >bind; echo vsock-guest: rebound $?";

void echo(int connection) {
  std::vector<char> bytes(1 << 18);
  ssize_t got;
  while ((got = read(connection, bytes.data(), bytes.size())) > 0) {
    for (ssize_t done = 0; done < got;) {
      const ssize_t put =
          write(connection, bytes.data() + done, static_cast<std::size_t>(got - done));
      if (put <= 0) return;
      done += put;
    }
  }
}

// Runs once its connection is closed, so that nothing of this process holds the driver.
void runDetached(int connection, const char* script) {
  if (fork() != 0) return;
  close(connection);
  execl("/bin/sh", "sh", "-c", script, nullptr);
  _exit(127);
}

void reload(int connection) {
  dprintf(connection, "reloading\n");
  runDetached(connection, RELOAD);
}

void rebind(int connection) {
  dprintf(connection, "rebinding\n");
  runDetached(connection, REBIND);
}

// Says which error a connection to the host ends with.
void dialHost(int connection) {
  const int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_vm address{};
  address.svm_family = AF_VSOCK;
  address.svm_port = 1234;
  address.svm_cid = VMADDR_CID_HOST;
  const int result = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  dprintf(connection, "%s\n", result == 0 ? "connected" : strerrorname_np(errno));
}

void hold(int connection) {
  char byte;
  while (read(connection, &byte, 1) > 0) {
  }
}

struct Service {
  unsigned port;
  void (*serve)(int connection);
};
constexpr std::array SERVICES = {Service{7000, echo}, Service{7001, reload}, Service{7002, rebind},
                                 Service{7003, dialHost}, Service{7004, hold}};

int listenOn(unsigned port) {
  const int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_vm address{};
  address.svm_family = AF_VSOCK;
  address.svm_port = port;
  address.svm_cid = VMADDR_CID_ANY;
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd, 64) != 0) {
    perror("vsock-guest: listen");
    return -1;
  }
  return fd;
}

}  // namespace

int main() {
  signal(SIGCHLD, SIG_IGN);
  std::array<pollfd, SERVICES.size()> listeners{};
  for (std::size_t i = 0; i < SERVICES.size(); ++i) {
    listeners[i] = {listenOn(SERVICES[i].port), POLLIN, 0};
    if (listeners[i].fd < 0) return 1;  // init starts us again
  }
  printf("vsock-guest: ready\n");
  fflush(stdout);
  for (;;) {
    if (poll(listeners.data(), listeners.size(), -1) < 0) continue;
    for (std::size_t i = 0; i < SERVICES.size(); ++i) {
      if ((listeners[i].revents & POLLIN) == 0) continue;
      const int connection = accept4(listeners[i].fd, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) continue;
      if (fork() == 0) {
        SERVICES[i].serve(connection);
        _exit(0);
      }
      close(connection);
    }
  }
}
