#include "services/vsock/testing/front-end-peer.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace cordon::vsock::testing {

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

Fd makeMemory(std::size_t size, int seals) {
  Fd fd(::memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  require(static_cast<bool>(fd) && ::ftruncate(fd.get(), static_cast<off_t>(size)) == 0, "memfd");
  require(seals == 0 || ::fcntl(fd.get(), F_ADD_SEALS, seals) == 0, "seals");
  return fd;
}

FrontEndPeer::FrontEndPeer(std::uint64_t cid, std::size_t rxBuffer)
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

FrontEndPeer::~FrontEndPeer() {
  ::munmap(mapped, SimulatedGuest::MEMORY_SIZE);
}

void FrontEndPeer::send(Request request, std::span<const std::uint8_t> payload,
                        std::span<const int> fds, std::uint32_t flags) {
  const MessageHeader header{static_cast<std::uint32_t>(request), flags,
                             static_cast<std::uint32_t>(payload.size())};
  std::vector<std::uint8_t> bytes(sizeof(header) + payload.size());
  std::memcpy(bytes.data(), &header, sizeof(header));
  if (!payload.empty()) std::memcpy(bytes.data() + sizeof(header), payload.data(), payload.size());
  sendRaw(bytes, fds);
}

void FrontEndPeer::sendRaw(std::span<const std::uint8_t> bytes, std::span<const int> fds) {
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

std::vector<std::uint8_t> FrontEndPeer::reply(MessageHeader& header) {
  require(::recv(socket.get(), &header, sizeof(header), MSG_WAITALL) == sizeof(header), "reply");
  std::vector<std::uint8_t> payload(header.size);
  require(payload.empty() || ::recv(socket.get(), payload.data(), payload.size(), MSG_WAITALL) ==
                                 static_cast<ssize_t>(payload.size()),
          "reply's payload");
  return payload;
}

std::uint64_t FrontEndPeer::replyNumber() {
  MessageHeader header{};
  const std::vector<std::uint8_t> payload = reply(header);
  require(payload.size() == 8, "size of the reply");
  std::uint64_t value;
  std::memcpy(&value, payload.data(), 8);
  return value;
}

void FrontEndPeer::negotiate() {
  send(Request::SET_OWNER);
  send(Request::SET_PROTOCOL_FEATURES, PROTOCOL_F_REPLY_ACK | PROTOCOL_F_CONFIG);
  send(Request::SET_FEATURES, (1ULL << 32) | VHOST_USER_F_PROTOCOL_FEATURES);
}

void FrontEndPeer::sendMemory() {
  struct {
    MemoryTableHeader header;
    MemoryTableRegion region;
  } table{
      {1, 0},
      {SimulatedGuest::GUEST_BASE, SimulatedGuest::MEMORY_SIZE, SimulatedGuest::FRONT_END_BASE, 0}};
  send(Request::SET_MEM_TABLE, table, {memory.get()});
}

void FrontEndPeer::setUpRing(std::uint32_t queue) {
  send(Request::SET_VRING_NUM, VringState{queue, SimulatedGuest::RING_SIZE});
  send(Request::SET_VRING_BASE, VringState{queue, 0});
  const RingAddresses rings = guest->rings(queue);
  send(Request::SET_VRING_ADDR,
       VringAddress{queue, 0, rings.descriptors, rings.used, rings.available, 0});
  send(Request::SET_VRING_KICK, std::uint64_t{queue}, {kicks[queue].get()});
  send(Request::SET_VRING_CALL, std::uint64_t{queue}, {calls[queue].get()});
}

void FrontEndPeer::start() {
  negotiate();
  sendMemory();
  startRings();
}

void FrontEndPeer::startRings() {
  for (std::uint32_t queue = 0; queue < QUEUE_COUNT; ++queue) setUpRing(queue);
  for (std::uint32_t queue = 0; queue < QUEUE_COUNT; ++queue)
    send(Request::SET_VRING_ENABLE, VringState{queue, 1});
}

std::array<std::uint32_t, QUEUE_COUNT> FrontEndPeer::stopRings() {
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

void FrontEndPeer::kick(std::size_t queue) {
  const std::uint64_t one = 1;
  require(::write(kicks[queue].get(), &one, sizeof(one)) == sizeof(one), "kick");
}

}  // namespace cordon::vsock::testing
