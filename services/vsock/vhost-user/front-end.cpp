#include "services/vsock/vhost-user/front-end.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/virtio_config.h>
#include <unistd.h>
#include <vector>

namespace cordon::vsock {
namespace {

// Nothing that a driver could use to make us read more of its memory: no indirect tables, no event
// index, no seqpacket.
constexpr std::uint64_t OFFERED_FEATURES =
    (1ULL << VIRTIO_F_VERSION_1) | VHOST_USER_F_PROTOCOL_FEATURES;
constexpr std::uint64_t OFFERED_PROTOCOL_FEATURES =
    PROTOCOL_F_MQ | PROTOCOL_F_REPLY_ACK | PROTOCOL_F_CONFIG;
constexpr std::size_t CONFIG_SIZE = sizeof(std::uint64_t);  // struct virtio_vsock_config

constexpr std::size_t ANY_SIZE = SIZE_MAX;
constexpr std::size_t ANY_COUNT = SIZE_MAX;

template <typename T>
T read(std::span<const std::uint8_t> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

template <typename T>
std::span<const std::uint8_t> bytesOf(const T& value) {
  return {reinterpret_cast<const std::uint8_t*>(&value), sizeof(T)};
}

}  // namespace

std::string_view name(FrontEndFault fault) {
  switch (fault) {
    case FrontEndFault::NONE:
      return "none";
    case FrontEndFault::CHANNEL:
      return "channel";
    case FrontEndFault::PAYLOAD_SIZE:
      return "payload-size";
    case FrontEndFault::DESCRIPTOR_COUNT:
      return "descriptor-count";
    case FrontEndFault::FEATURES:
      return "features";
    case FrontEndFault::RING_INDEX:
      return "ring-index";
    case FrontEndFault::RING_VALUE:
      return "ring-value";
    case FrontEndFault::RING_STARTED:
      return "ring-started";
    case FrontEndFault::POLLING:
      return "polling";
    case FrontEndFault::KICK_DESCRIPTOR:
      return "kick-descriptor";
    case FrontEndFault::MEMORY:
      return "memory";
    case FrontEndFault::REPLY:
      return "reply";
  }
  return "unknown";
}

// All that a front end may ask for: the request, the size of its payload, the descriptors it
// brings, what answers it, and whether that answer is a reply of its own.
struct FrontEnd::Entry {
  Request request;
  std::size_t payload;
  std::size_t descriptors;
  Outcome (FrontEnd::*handler)(Message&);
  bool replies;
};

FrontEnd::FrontEnd(int socket, std::uint64_t guestCid, Device& theDevice, Poller& thePoller,
                   BoundedLog& theLog)
    : cid(guestCid), device(theDevice), poller(thePoller), log(theLog), channel(socket) {}

FrontEnd::Outcome FrontEnd::handle(Message& message) {
  static constexpr Entry REQUESTS[] = {
      {Request::GET_FEATURES, 0, 0, &FrontEnd::getFeatures, true},
      {Request::SET_FEATURES, 8, 0, &FrontEnd::setFeatures, false},
      {Request::SET_OWNER, 0, 0, &FrontEnd::setOwner, false},
      {Request::SET_MEM_TABLE, ANY_SIZE, ANY_COUNT, &FrontEnd::setMemTable, false},
      {Request::SET_VRING_NUM, sizeof(VringState), 0, &FrontEnd::setVringNum, false},
      {Request::SET_VRING_ADDR, sizeof(VringAddress), 0, &FrontEnd::setVringAddr, false},
      {Request::SET_VRING_BASE, sizeof(VringState), 0, &FrontEnd::setVringBase, false},
      {Request::GET_VRING_BASE, sizeof(VringState), 0, &FrontEnd::getVringBase, true},
      {Request::SET_VRING_KICK, 8, ANY_COUNT, &FrontEnd::setVringKick, false},
      {Request::SET_VRING_CALL, 8, ANY_COUNT, &FrontEnd::setVringCall, false},
      {Request::SET_VRING_ERR, 8, ANY_COUNT, &FrontEnd::setVringErr, false},
      {Request::GET_PROTOCOL_FEATURES, 0, 0, &FrontEnd::getProtocolFeatures, true},
      {Request::SET_PROTOCOL_FEATURES, 8, 0, &FrontEnd::setProtocolFeatures, false},
      {Request::GET_QUEUE_NUM, 0, 0, &FrontEnd::getQueueNum, true},
      {Request::SET_VRING_ENABLE, sizeof(VringState), 0, &FrontEnd::setVringEnable, false},
      {Request::GET_CONFIG, ANY_SIZE, 0, &FrontEnd::getConfig, true},
  };
  const std::uint32_t wanted = message.header.request;
  const bool acknowledge = (message.header.flags & FLAG_NEED_REPLY) != 0 &&
                           (protocolFeatures & PROTOCOL_F_REPLY_ACK) != 0;
  const auto* entry = std::find_if(
      std::begin(REQUESTS), std::end(REQUESTS),
      [wanted](const Entry& e) { return static_cast<std::uint32_t>(e.request) == wanted; });
  if (entry == std::end(REQUESTS)) {
    log.line(log::Level::WARN, "request.refused",
             {{"request", wanted}, {"bytes", message.header.size}});
    return acknowledge ? answer(wanted, 1) : Outcome::GOES_ON;
  }
  if (entry->payload != ANY_SIZE && message.header.size != entry->payload) {
    return refuse(FrontEndFault::PAYLOAD_SIZE);
  }
  if (entry->descriptors != ANY_COUNT && message.fds.size() != entry->descriptors) {
    return refuse(FrontEndFault::DESCRIPTOR_COUNT);
  }
  const Outcome outcome = (this->*entry->handler)(message);
  if (outcome == Outcome::GOES_ON && acknowledge && !entry->replies) return answer(wanted, 0);
  return outcome;
}

FrontEnd::Outcome FrontEnd::onReadable() {
  // One turn takes what one start-up sends; a front end that floods us waits for its next turn.
  for (int taken = 0; taken < 64; ++taken) {
    switch (channel.read()) {
      case VhostUserChannel::Read::WAIT:
        return Outcome::GOES_ON;
      case VhostUserChannel::Read::ENDED:
        if (channel.fault() == ChannelFault::CLOSED) return Outcome::GONE;
        return refuse(FrontEndFault::CHANNEL);
      case VhostUserChannel::Read::MESSAGE:
        break;
    }
    const Outcome outcome = handle(channel.message());
    channel.message().fds.clear();
    if (outcome != Outcome::GOES_ON) return outcome;
  }
  return Outcome::GOES_ON;
}

FrontEnd::Outcome FrontEnd::refuse(FrontEndFault why) {
  reason = why;
  return Outcome::FAULT;
}

FrontEnd::Outcome FrontEnd::answer(std::uint32_t request, std::span<const std::uint8_t> payload) {
  return channel.reply(request, payload) ? Outcome::GOES_ON : refuse(FrontEndFault::REPLY);
}

FrontEnd::Outcome FrontEnd::answer(std::uint32_t request, std::uint64_t value) {
  return answer(request, bytesOf(value));
}

FrontEnd::Outcome FrontEnd::getFeatures(Message& message) {
  return answer(message.header.request, OFFERED_FEATURES);
}

FrontEnd::Outcome FrontEnd::setFeatures(Message& message) {
  const auto wanted = read<std::uint64_t>(message.bytes());
  if ((wanted & ~OFFERED_FEATURES) != 0) return refuse(FrontEndFault::FEATURES);
  features = wanted;
  return Outcome::GOES_ON;
}

FrontEnd::Outcome FrontEnd::getProtocolFeatures(Message& message) {
  return answer(message.header.request, OFFERED_PROTOCOL_FEATURES);
}

FrontEnd::Outcome FrontEnd::setProtocolFeatures(Message& message) {
  const auto wanted = read<std::uint64_t>(message.bytes());
  if ((wanted & ~OFFERED_PROTOCOL_FEATURES) != 0) return refuse(FrontEndFault::FEATURES);
  protocolFeatures = wanted;
  return Outcome::GOES_ON;
}

FrontEnd::Outcome FrontEnd::setOwner(Message&) {
  return Outcome::GOES_ON;
}

FrontEnd::Outcome FrontEnd::getQueueNum(Message& message) {
  return answer(message.header.request, std::uint64_t{QUEUE_COUNT});
}

FrontEnd::Outcome FrontEnd::setMemTable(Message& message) {
  const std::span<const std::uint8_t> bytes = message.bytes();
  if (bytes.size() < sizeof(MemoryTableHeader)) return refuse(FrontEndFault::PAYLOAD_SIZE);
  const std::uint64_t count = read<MemoryTableHeader>(bytes).regions;
  if (count > GuestMemory::MAX_REGIONS ||
      bytes.size() != sizeof(MemoryTableHeader) + count * sizeof(MemoryTableRegion)) {
    return refuse(FrontEndFault::PAYLOAD_SIZE);
  }
  if (message.fds.size() != count) return refuse(FrontEndFault::DESCRIPTOR_COUNT);
  std::vector<MemoryTableRegion> table(count);
  if (count > 0) {
    std::memcpy(table.data(), bytes.data() + sizeof(MemoryTableHeader),
                count * sizeof(MemoryTableRegion));
  }
  MappedMemory fresh;
  mapping = MappedMemory::map(table, message.fds, fresh);
  if (mapping != MappingFault::NONE) return refuse(FrontEndFault::MEMORY);
  device.memory().assign(fresh.view());  // map() has checked what assign() could refuse
  device.memoryChanged();
  memory =
      std::move(fresh);  // `fresh` now has the old mappings, which nothing points into any more
  return Outcome::GOES_ON;
}

FrontEnd::Outcome FrontEnd::setVringNum(Message& message) {
  const auto state = read<VringState>(message.bytes());
  if (state.index >= QUEUE_COUNT) return refuse(FrontEndFault::RING_INDEX);
  if (rings[state.index].started) return refuse(FrontEndFault::RING_STARTED);
  rings[state.index].size = state.value;
  return Outcome::GOES_ON;
}

FrontEnd::Outcome FrontEnd::setVringAddr(Message& message) {
  const auto wanted = read<VringAddress>(message.bytes());
  if (wanted.index >= QUEUE_COUNT) return refuse(FrontEndFault::RING_INDEX);
  if (wanted.flags != 0) return refuse(FrontEndFault::RING_VALUE);
  if (rings[wanted.index].started) return refuse(FrontEndFault::RING_STARTED);
  rings[wanted.index].addresses = {wanted.descriptors, wanted.available, wanted.used};
  return Outcome::GOES_ON;
}

FrontEnd::Outcome FrontEnd::setVringBase(Message& message) {
  const auto state = read<VringState>(message.bytes());
  if (state.index >= QUEUE_COUNT) return refuse(FrontEndFault::RING_INDEX);
  if (state.value > UINT16_MAX) return refuse(FrontEndFault::RING_VALUE);
  if (rings[state.index].started) return refuse(FrontEndFault::RING_STARTED);
  rings[state.index].base = static_cast<std::uint16_t>(state.value);
  return Outcome::GOES_ON;
}

FrontEnd::Outcome FrontEnd::getVringBase(Message& message) {
  auto state = read<VringState>(message.bytes());
  if (state.index >= QUEUE_COUNT) return refuse(FrontEndFault::RING_INDEX);
  stop(state.index);
  if (rings[state.index].kick) poller.remove(rings[state.index].kick.get());
  rings[state.index].kick.reset();
  state.value = rings[state.index].base;
  return answer(message.header.request, bytesOf(state));
}

FrontEnd::Outcome FrontEnd::ringDescriptor(Message& message, std::uint32_t& ring, Fd& descriptor) {
  const auto value = read<std::uint64_t>(message.bytes());
  if ((value & ~(VRING_INDEX_MASK | VRING_NO_FD)) != 0) return refuse(FrontEndFault::RING_VALUE);
  ring = static_cast<std::uint32_t>(value & VRING_INDEX_MASK);
  if (ring >= QUEUE_COUNT) return refuse(FrontEndFault::RING_INDEX);
  const std::size_t expected = (value & VRING_NO_FD) != 0 ? 0 : 1;
  if (message.fds.size() != expected) return refuse(FrontEndFault::DESCRIPTOR_COUNT);
  if (expected == 0) return Outcome::GOES_ON;
  descriptor = std::move(message.fds.front());
  const int flags = ::fcntl(descriptor.get(), F_GETFL);
  if (flags < 0 ||
      ((flags & O_NONBLOCK) == 0 && ::fcntl(descriptor.get(), F_SETFL, flags | O_NONBLOCK) != 0)) {
    return refuse(FrontEndFault::KICK_DESCRIPTOR);
  }
  return Outcome::GOES_ON;
}

FrontEnd::Outcome FrontEnd::setVringKick(Message& message) {
  std::uint32_t index = 0;
  Fd descriptor;
  if (ringDescriptor(message, index, descriptor) != Outcome::GOES_ON) return Outcome::FAULT;
  if (!descriptor) return refuse(FrontEndFault::POLLING);
  Ring& ring = rings[index];
  if (ring.kick) poller.remove(ring.kick.get());
  ring.kick = std::move(descriptor);
  if (!poller.add(ring.kick.get(), {WatchKind::KICK, index}, EPOLLIN)) {
    return refuse(FrontEndFault::KICK_DESCRIPTOR);
  }
  startIfReady(index);
  return Outcome::GOES_ON;
}

FrontEnd::Outcome FrontEnd::setVringCall(Message& message) {
  std::uint32_t index = 0;
  Fd descriptor;
  if (ringDescriptor(message, index, descriptor) != Outcome::GOES_ON) return Outcome::FAULT;
  rings[index].call = std::move(descriptor);
  return Outcome::GOES_ON;
}

FrontEnd::Outcome FrontEnd::setVringErr(Message& message) {
  std::uint32_t index = 0;
  Fd unused;
  return ringDescriptor(message, index, unused);
}

FrontEnd::Outcome FrontEnd::setVringEnable(Message& message) {
  const auto state = read<VringState>(message.bytes());
  if (state.index >= QUEUE_COUNT) return refuse(FrontEndFault::RING_INDEX);
  if (state.value > 1) return refuse(FrontEndFault::RING_VALUE);
  rings[state.index].enabled = state.value == 1;
  if (state.value == 1) {
    startIfReady(state.index);
  } else {
    stop(state.index);
  }
  return Outcome::GOES_ON;
}

FrontEnd::Outcome FrontEnd::getConfig(Message& message) {
  const std::span<const std::uint8_t> bytes = message.bytes();
  if (bytes.size() < sizeof(ConfigHeader)) return refuse(FrontEndFault::PAYLOAD_SIZE);
  const auto wanted = read<ConfigHeader>(bytes);
  if (wanted.size > MAX_CONFIG_SIZE || bytes.size() != sizeof(ConfigHeader) + wanted.size) {
    return refuse(FrontEndFault::PAYLOAD_SIZE);
  }
  if (wanted.offset > CONFIG_SIZE || wanted.size > CONFIG_SIZE - wanted.offset) {
    log.line(log::Level::WARN, "config.refused",
             {{"offset", wanted.offset}, {"bytes", wanted.size}});
    return answer(message.header.request, std::span<const std::uint8_t>{});
  }
  std::array<std::uint8_t, sizeof(ConfigHeader) + CONFIG_SIZE> reply;
  std::memcpy(reply.data(), &wanted, sizeof(wanted));
  std::memcpy(reply.data() + sizeof(wanted), bytesOf(cid).data() + wanted.offset, wanted.size);
  return answer(message.header.request, {reply.data(), sizeof(wanted) + wanted.size});
}

void FrontEnd::startIfReady(std::uint32_t index) {
  Ring& ring = rings[index];
  // Without the negotiation of protocol features a ring is born enabled.
  const bool enabled = ring.enabled || (features & VHOST_USER_F_PROTOCOL_FEATURES) == 0;
  if (ring.started || !enabled || !ring.kick) return;
  ring.started = true;
  if ((features & (1ULL << VIRTIO_F_VERSION_1)) == 0) {
    log.line(log::Level::WARN, "ring.refused", {{"ring", index}, {"reason", "legacy-driver"}});
    return;
  }
  const QueueFault fault = device.startQueue(index, ring.addresses, ring.size, ring.base);
  if (fault != QueueFault::NONE) {
    log.line(log::Level::WARN, "ring.refused", {{"ring", index}, {"reason", vsock::name(fault)}});
    return;
  }
  log.line(log::Level::INFO, "ring.started", {{"ring", index}, {"size", ring.size}});
}

void FrontEnd::stop(std::uint32_t index) {
  Ring& ring = rings[index];
  if (!ring.started) return;
  ring.started = false;
  ring.base = device.stopQueue(index);
  log.line(log::Level::INFO, "ring.stopped", {{"ring", index}});
}

void FrontEnd::onKick(std::uint32_t index) {
  if (index >= QUEUE_COUNT || !rings[index].kick) return;
  std::uint64_t count;
  const ssize_t got = ::read(rings[index].kick.get(), &count, sizeof(count));
  if (got == sizeof(count)) return;
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  // Readable for ever, and nothing to read: an end of file, or no eventfd at all. The ring then
  // lives by the watchdog.
  poller.remove(rings[index].kick.get());
  log.line(log::Level::WARN, "kick.lost", {{"ring", index}});
}

void FrontEnd::sendInterrupts() {
  for (std::uint32_t index = 0; index < QUEUE_COUNT; ++index) {
    if (!device.takeInterrupt(index) || !rings[index].call) continue;
    const std::uint64_t one = 1;
    // EAGAIN: the counter is full of interrupts that nobody took yet, so one is pending.
    [[maybe_unused]] const ssize_t ignored = ::write(rings[index].call.get(), &one, sizeof(one));
  }
}

}  // namespace cordon::vsock
