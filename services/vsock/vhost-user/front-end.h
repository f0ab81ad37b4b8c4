// What the front end (QEMU) may ask of the device, and what it gets. The front end is presumed lost
// together with its guest: every message is checked in full before it has any effect, and the first
// one that no front end of this device sends ends the process.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "services/vsock/device/device.h"
#include "services/vsock/fd.h"
#include "services/vsock/log.h"
#include "services/vsock/poller.h"
#include "services/vsock/vhost-user/channel.h"
#include "services/vsock/vhost-user/mapping.h"

namespace cordon::vsock {

enum class FrontEndFault : std::uint8_t {
  NONE,
  CHANNEL,           // see channelFault()
  PAYLOAD_SIZE,      // not the size that the request has
  DESCRIPTOR_COUNT,  // not the number of descriptors that the request has
  FEATURES,          // bits that were not offered
  RING_INDEX,        // a ring that the device does not have
  RING_VALUE,        // a size, base or flag out of range
  RING_STARTED,      // changes a ring that runs
  POLLING,           // wants a ring polled instead of kicked
  KICK_DESCRIPTOR,   // nothing that can be waited for
  MEMORY,            // see mappingFault()
  REPLY,             // does not read its replies
};
std::string_view name(FrontEndFault fault);

class FrontEnd {
 public:
  enum class Outcome : std::uint8_t { GOES_ON, GONE, FAULT };

  // A non-blocking socket. Watches {KICK, ring} come and go in
  // `poller`.
  FrontEnd(int socket, std::uint64_t guestCid, Device& device, Poller& poller, BoundedLog& log);

  // The socket is readable.
  Outcome onReadable();
  // A kick descriptor is readable.
  void onKick(std::uint32_t ring);
  // Interrupts the driver for what the device completed.
  void sendInterrupts();

  FrontEndFault fault() const { return reason; }
  ChannelFault channelFault() const { return channel.fault(); }
  MappingFault mappingFault() const { return mapping; }

 private:
  struct Entry;  // of the table of requests
  struct Ring {
    std::uint32_t size = 0;
    RingAddresses addresses;
    std::uint16_t base = 0;
    bool enabled = false;
    bool started = false;  // also if its start failed or the guest broke it: only a stop ends that
    Fd kick;
    Fd call;
  };

  Outcome handle(Message& message);
  Outcome refuse(FrontEndFault why);
  Outcome answer(std::uint32_t request, std::span<const std::uint8_t> payload);
  Outcome answer(std::uint32_t request, std::uint64_t value);

  Outcome getFeatures(Message& message);
  Outcome setFeatures(Message& message);
  Outcome getProtocolFeatures(Message& message);
  Outcome setProtocolFeatures(Message& message);
  Outcome setOwner(Message& message);
  Outcome getQueueNum(Message& message);
  Outcome setMemTable(Message& message);
  Outcome setVringNum(Message& message);
  Outcome setVringAddr(Message& message);
  Outcome setVringBase(Message& message);
  Outcome getVringBase(Message& message);
  Outcome setVringKick(Message& message);
  Outcome setVringCall(Message& message);
  Outcome setVringErr(Message& message);
  Outcome setVringEnable(Message& message);
  Outcome getConfig(Message& message);

  // The ring and the descriptor, if one came, of SET_VRING_KICK, CALL and ERR.
  Outcome ringDescriptor(Message& message, std::uint32_t& ring, Fd& descriptor);
  void startIfReady(std::uint32_t ring);
  void stop(std::uint32_t ring);

  std::uint64_t cid;
  Device& device;
  Poller& poller;
  BoundedLog& log;
  VhostUserChannel channel;
  MappedMemory memory;
  std::array<Ring, QUEUE_COUNT> rings;
  std::uint64_t features = 0;
  std::uint64_t protocolFeatures = 0;
  FrontEndFault reason = FrontEndFault::NONE;
  MappingFault mapping = MappingFault::NONE;
};

}  // namespace cordon::vsock
