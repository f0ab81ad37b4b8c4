// The front end's side of a vhost-user socket, with guest memory in a memfd and a simulated guest in it: QEMU's part,
// honest or not, for tests and the benchmark.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <type_traits>
#include <unistd.h>
#include <vector>

#include "services/vsock/device/device.h"
#include "services/vsock/fd.h"
#include "services/vsock/testing/simulated-guest.h"
#include "services/vsock/vhost-user/message.h"

namespace cordon::vsock::testing {

inline void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

// A memfd of `size` bytes with these seals.
inline Fd makeMemory(std::size_t size, int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) {
  Fd fd(::memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  require(static_cast<bool>(fd) && ::ftruncate(fd.get(), static_cast<off_t>(size)) == 0, "memfd");
  require(seals == 0 || ::fcntl(fd.get(), F_ADD_SEALS, seals) == 0, "seals");
  return fd;
}

class FrontEndPeer {
 public:
  explicit FrontEndPeer(std::uint64_t cid = 10000, std::size_t rxBuffer = SimulatedGuest::BUFFER)
      : memory(makeMemory(SimulatedGuest::MEMORY_SIZE)) {
    std::array<int, 2> ends{};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "socketpair");
    socket = Fd(ends[0]);
    backEnd = Fd(ends[1]);
    const timeval deadline{20, 0};  // a reply that never comes is a failure, not a hang
    require(::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline)) == 0,
            "deadline");
    void* where = ::mmap(nullptr, SimulatedGuest::MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
                         memory.get(), 0);
    require(where != MAP_FAILED, "mmap");
    mapped = static_cast<std::uint8_t*>(where);
    guest = std::make_unique<SimulatedGuest>(mapped, cid, rxBuffer);
    for (std::size_t queue = 0; queue < QUEUE_COUNT; ++queue) {
      kicks[queue] = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
      calls[queue] = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    }
  }
  FrontEndPeer(const FrontEndPeer&) = delete;
  ~FrontEndPeer() { ::munmap(mapped, SimulatedGuest::MEMORY_SIZE); }

  void send(Request request, std::span<const std::uint8_t> payload, std::span<const int> fds = {},
            std::uint32_t flags = PROTOCOL_VERSION) {
    const MessageHeader header{static_cast<std::uint32_t>(request), flags,
                               static_cast<std::uint32_t>(payload.size())};
    std::vector<std::uint8_t> bytes(sizeof(header) + payload.size());
    std::memcpy(bytes.data(), &header, sizeof(header));
    if (!payload.empty())
      std::memcpy(bytes.data() + sizeof(header), payload.data(), payload.size());
    sendRaw(bytes, fds);
  }
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void send(Request request, const T& value, std::initializer_list<int> fds = {},
            std::uint32_t flags = PROTOCOL_VERSION) {
    send(request, std::span(reinterpret_cast<const std::uint8_t*>(&value), sizeof(value)),
         std::span(fds.begin(), fds.size()), flags);
  }
  void send(Request request) { send(request, std::span<const std::uint8_t>{}); }
  void sendRaw(std::span<const std::uint8_t> bytes, std::span<const int> fds = {}) {
    iovec piece{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
    std::vector<char> control(CMSG_SPACE(fds.size_bytes()));
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(fds.size_bytes());
      std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
    }
    require(::sendmsg(socket.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()),
            "sendmsg");
  }
  // The next reply's payload; its header in `header`.
  std::vector<std::uint8_t> reply(MessageHeader& header) {
    require(::recv(socket.get(), &header, sizeof(header), MSG_WAITALL) == sizeof(header), "reply");
    std::vector<std::uint8_t> payload(header.size);
    require(payload.empty() || ::recv(socket.get(), payload.data(), payload.size(), MSG_WAITALL) ==
                                   static_cast<ssize_t>(payload.size()),
            "reply's payload");
    return payload;
  }
  std::uint64_t replyNumber() {
    MessageHeader header{};
    const std::vector<std::uint8_t> payload = reply(header);
    require(payload.size() == 8, "size of the reply");
    std::uint64_t value;
    std::memcpy(&value, payload.data(), 8);
    return value;
  }

  // ---- What QEMU sends, in its order
  void negotiate() {
    send(Request::SET_OWNER);
    send(Request::SET_PROTOCOL_FEATURES, PROTOCOL_F_REPLY_ACK | PROTOCOL_F_CONFIG);
    send(Request::SET_FEATURES, (1ULL << 32) | VHOST_USER_F_PROTOCOL_FEATURES);
  }
  void sendMemory() {
    struct {
      MemoryTableHeader header;
      MemoryTableRegion region;
    } table{{1, 0},
            {SimulatedGuest::GUEST_BASE, SimulatedGuest::MEMORY_SIZE,
             SimulatedGuest::FRONT_END_BASE, 0}};
    send(Request::SET_MEM_TABLE, table, {memory.get()});
  }
  void setUpRing(std::uint32_t queue) {
    send(Request::SET_VRING_NUM, VringState{queue, SimulatedGuest::RING_SIZE});
    send(Request::SET_VRING_BASE, VringState{queue, 0});
    const RingAddresses rings = guest->rings(queue);
    send(Request::SET_VRING_ADDR,
         VringAddress{queue, 0, rings.descriptors, rings.used, rings.available, 0});
    send(Request::SET_VRING_KICK, std::uint64_t{queue}, {kicks[queue].get()});
    send(Request::SET_VRING_CALL, std::uint64_t{queue}, {calls[queue].get()});
  }
  void start() {
    negotiate();
    sendMemory();
    startRings();
  }
  void startRings() {
    for (std::uint32_t queue = 0; queue < QUEUE_COUNT; ++queue) setUpRing(queue);
    for (std::uint32_t queue = 0; queue < QUEUE_COUNT; ++queue)
      send(Request::SET_VRING_ENABLE, VringState{queue, 1});
  }
  // Returns the base of each ring.
  std::array<std::uint32_t, QUEUE_COUNT> stopRings() {
    std::array<std::uint32_t, QUEUE_COUNT> bases{};
    for (std::uint32_t queue = 0; queue < QUEUE_COUNT; ++queue) {
      send(Request::SET_VRING_ENABLE, VringState{queue, 0});
      send(Request::GET_VRING_BASE, VringState{queue, 0});
      MessageHeader header{};
      const std::vector<std::uint8_t> payload = reply(header);
      require(payload.size() == sizeof(VringState), "GET_VRING_BASE");
      VringState state{};
      std::memcpy(&state, payload.data(), sizeof(state));
      bases[queue] = state.value;
    }
    return bases;
  }
  void kick(std::size_t queue) {
    const std::uint64_t one = 1;
    require(::write(kicks[queue].get(), &one, sizeof(one)) == sizeof(one), "kick");
  }

  Fd socket;
  Fd backEnd;  // the device's end
  Fd memory;
  std::array<Fd, QUEUE_COUNT> kicks;
  std::array<Fd, QUEUE_COUNT> calls;
  std::unique_ptr<SimulatedGuest> guest;
  std::uint8_t* mapped = nullptr;
};

}  // namespace cordon::vsock::testing
