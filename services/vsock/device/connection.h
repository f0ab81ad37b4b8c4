// One stream between a client on the host and a port of the guest.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "services/vsock/device/byte-ring.h"
#include "services/vsock/device/credit.h"
#include "services/vsock/device/host-stream.h"

namespace cordon::vsock {

using TimePoint = std::chrono::steady_clock::time_point;

struct Connection {
  enum class State : std::uint8_t {
    REQUESTED,  // the guest has not answered yet
    OPEN,
    CLOSING,  // the client is gone; the guest was told, or is about to be, and answers with a reset
    RESETTING,  // a reset for the guest waits for room
    DRAINING,   // the guest is done with it; the client still reads what the guest sent before
  };

  Connection(std::uint32_t host, std::uint32_t guest, std::unique_ptr<HostStream> client,
             std::uint32_t bufferSize)
      : hostPort(host),
        guestPort(guest),
        stream(std::move(client)),
        receive(bufferSize),
        toHost(bufferSize) {}

  std::uint32_t hostPort;
  std::uint32_t guestPort;
  std::unique_ptr<HostStream> stream;  // null once the client is of no use any more
  State state = State::REQUESTED;

  SendCredit send;
  ReceiveCredit receive;
  ByteRing toHost;

  // Packets that wait for room in the rx queue. Each flag is cleared where its packet is written,
  // nowhere else.
  bool owesRequest = true;
  bool owesCreditUpdate = false;
  bool owesCreditRequest = false;
  std::uint32_t owesShutdown = 0;  // flags of VIRTIO_VSOCK_OP_SHUTDOWN

  bool large = false;         // counts against the budget of large buffers
  bool readable = true;       // the client may have bytes: false only after BLOCKED
  bool hungUp = false;        // the client closed its socket: what it sent is still delivered
  bool clientEnded = false;   // its last byte is on its way
  bool guestReceives = true;  // false after SHUTDOWN with RCV
  bool guestSends = true;     // false after SHUTDOWN with SEND
  bool writeEnded = false;    // the client has its end of file
  bool inService = false;     // stands in Device's line for the rx queue
  bool starved = false;       // has bytes for the guest but no credit; a credit request was sent
  TimePoint deadline = TimePoint::max();
  TimePoint starvedSince = TimePoint::max();

  bool mayReadClient() const { return stream && readable && !clientEnded && guestReceives; }
};

}  // namespace cordon::vsock
