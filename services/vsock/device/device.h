// The virtio-vsock device of one guest, without any I/O of its own: two queues in guest memory on
// one side, HostStreams on the other. Only the host opens connections; what the guest asks for is
// reset and counted.
//
// The owner calls pump() whenever anything may have changed (a kick, an event of a stream, a tick
// of its clock).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>

#include "services/vsock/device/connection.h"
#include "services/vsock/device/counters.h"
#include "services/vsock/device/guest-memory.h"
#include "services/vsock/device/packet.h"
#include "services/vsock/device/virtqueue.h"

namespace cordon::vsock {

inline constexpr std::size_t RX_QUEUE = 0;
inline constexpr std::size_t TX_QUEUE = 1;
inline constexpr std::size_t QUEUE_COUNT = 2;  // the event queue stays with the front end

// Memory: a connection buffers what the guest sent and the client has not read, up to the buffer
// that the guest was told of. The sum of all is bounded: large buffers while they last, small ones
// after that. The other direction has no buffer at all, bytes go from the socket into guest memory.
struct Limits {
  std::size_t connections = 1024;
  std::uint32_t largeBuffer = 256 * 1024;
  std::uint32_t smallBuffer = 16 * 1024;
  std::size_t largeBufferBudget =
      48U << 20;                  // bytes: 192 large buffers, so 64 MiB at most with the small ones
  std::size_t strayResets = 256;  // resets owed to packets that belong to no connection
  std::size_t packetsPerPump = 256;  // of each queue, so that a flood cannot starve the event loop

  std::chrono::milliseconds request{10'000};  // the guest's answer to a connection
  std::chrono::milliseconds closing{8'000};  // its answer to a shutdown: Linux gives itself as much
  std::chrono::milliseconds hungUp{60'000};  // its reading of what a client left behind
  std::chrono::milliseconds draining{60'000};      // a client's progress after the guest is done
  std::chrono::milliseconds creditRequest{1'000};  // between two requests of a starved connection
};

class Device {
 public:
  explicit Device(std::uint64_t guestCid, Limits limits = {});

  // ---- The front end's side
  // Whoever changes the memory calls memoryChanged() before anything else: running queues point
  // into it.
  GuestMemory& memory() { return guestMemory; }
  void memoryChanged();
  QueueFault startQueue(std::size_t queue, const RingAddresses& addresses, std::uint32_t size,
                        std::uint16_t base);
  // Ends every connection: the driver behind the queues is going, and its sockets with it.
  std::uint16_t stopQueue(std::size_t queue);
  bool queueRunning(std::size_t queue) const { return queues[queue].running(); }
  bool ready() const { return queueRunning(RX_QUEUE) && queueRunning(TX_QUEUE); }
  bool takeInterrupt(std::size_t queue) { return queues[queue].takeInterrupt(); }

  // ---- The host's side
  // Asks the guest for a connection to its port. The host port names the connection from then on
  // and is not used by another while it lives. Absent, and the stream closed, if the device is not
  // ready or full (counted).
  std::optional<std::uint32_t> connect(std::unique_ptr<HostStream> stream, std::uint32_t guestPort,
                                       TimePoint now);
  // Something happened to a stream; hungUp = the client closed it whole. Unknown ports are ignored:
  // events may lag.
  void hostEvent(std::uint32_t hostPort, bool mayRead, bool mayWrite, bool hungUp, TimePoint now);

  // ---- Work
  // True if there is more to do at once. A queue that breaks here stops the device; takeFault()
  // says so, once.
  bool pump(TimePoint now);
  // Deadlines; also the watchdog that looks into the queues even if no kick came.
  void tick(TimePoint now);
  struct Fault {
    std::size_t queue;
    QueueFault reason;
  };
  std::optional<Fault> takeFault();

  std::size_t connectionCount() const { return connections.size(); }
  std::size_t bufferedBytes() const;  // of all connections; for tests
  const Limits& limits() const { return bounds; }
  Counters counters;

 private:
  struct Stray {
    std::uint32_t hostPort;
    std::uint32_t guestPort;
    std::uint16_t type;
  };

  void breakDevice(std::size_t queue);
  void dropAllConnections();
  std::uint32_t freeHostPort();

  bool pumpTx(TimePoint now);
  void receive(const Virtqueue::Chain& chain, TimePoint now);
  void receiveFor(Connection& connection, const PacketHeader& header, const Virtqueue::Chain& chain,
                  TimePoint now);
  void receiveResponse(Connection& connection, TimePoint now);
  void receivePayload(Connection& connection, const Virtqueue::Chain& chain, std::uint32_t bytes,
                      TimePoint now);
  void receiveShutdown(Connection& connection, std::uint32_t flags, TimePoint now);
  void answerStray(const PacketHeader& header);

  bool pumpRx(TimePoint now);
  void serve(Connection& connection, const Virtqueue::Chain& chain, TimePoint now);
  bool sendBytes(Connection& connection, const Virtqueue::Chain& chain, TimePoint now);
  void writePacket(const Virtqueue::Chain& chain, const PacketHeader& header);
  PacketHeader headerFor(Connection& connection, std::uint16_t op);

  bool hasWork(const Connection& connection) const;
  void enqueue(Connection& connection);
  // What one event may do to a connection. None of these frees it: settle() does, last.
  void flush(Connection& connection, TimePoint now);
  void discardToHost(Connection& connection);
  void reset(Connection& connection, TimePoint now);
  void violation(Connection& connection, TimePoint now);
  void clientHungUp(Connection& connection, TimePoint now);
  void clientGone(Connection& connection, TimePoint now);
  void guestDone(Connection& connection, Connection::State next, TimePoint now);
  void settle(Connection& connection);

  std::uint64_t cid;
  Limits bounds;
  GuestMemory guestMemory;
  std::array<Virtqueue, QUEUE_COUNT> queues;
  std::unordered_map<std::uint32_t, std::unique_ptr<Connection>> connections;  // by host port
  std::deque<std::uint32_t> service;  // host ports; each at most once
  std::deque<Stray> strays;
  std::size_t largeBuffersInUse = 0;
  std::uint32_t nextHostPort;
  std::optional<Fault> fault;
};

}  // namespace cordon::vsock
