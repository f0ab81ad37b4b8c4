#include "services/vsock/device/device.h"

#include <utility>
#include <vector>

namespace cordon::vsock {
namespace {

// Far above every port that a service listens on, and the range in which other hybrid devices
// number theirs.
constexpr std::uint32_t FIRST_HOST_PORT = 1U << 30;
constexpr std::uint32_t LAST_HOST_PORT = (1U << 31) - 1;

}  // namespace

Device::Device(std::uint64_t guestCid, Limits limits)
    : cid(guestCid),
      bounds(limits),
      queues{Virtqueue(Virtqueue::Direction::WRITABLE), Virtqueue(Virtqueue::Direction::READABLE)},
      nextHostPort(FIRST_HOST_PORT) {}

QueueFault Device::startQueue(std::size_t queue, const RingAddresses& addresses, std::uint32_t size,
                              std::uint16_t base) {
  const QueueFault result = queues[queue].start(guestMemory, addresses, size, base);
  if (result != QueueFault::NONE) {
    ++counters.queueFaults;
  } else {
    ++counters.ringStarts;
  }
  return result;
}

std::uint16_t Device::stopQueue(std::size_t queue) {
  dropAllConnections();
  return queues[queue].stop();
}

void Device::memoryChanged() {
  for (std::size_t queue = 0; queue < QUEUE_COUNT; ++queue) {
    if (queues[queue].rebind(guestMemory) != QueueFault::NONE) {
      breakDevice(queue);
      return;
    }
  }
}

void Device::breakDevice(std::size_t queue) {
  fault = Fault{queue, queues[queue].fault()};
  ++counters.queueFaults;
  for (Virtqueue& each : queues) each.stop();
  dropAllConnections();
}

std::optional<Device::Fault> Device::takeFault() {
  return std::exchange(fault, std::nullopt);
}

void Device::dropAllConnections() {
  service.clear();
  strays.clear();
  connections.clear();
  largeBuffersInUse = 0;
}

std::uint32_t Device::freeHostPort() {
  for (;;) {
    const std::uint32_t port = nextHostPort;
    nextHostPort = port == LAST_HOST_PORT ? FIRST_HOST_PORT : port + 1;
    if (!connections.contains(port)) return port;
  }
}

std::optional<std::uint32_t> Device::connect(std::unique_ptr<HostStream> stream,
                                             std::uint32_t guestPort, TimePoint now) {
  if (!ready()) {
    ++counters.notReady;
    return std::nullopt;
  }
  if (connections.size() >= bounds.connections) {
    ++counters.overCap;
    return std::nullopt;
  }
  const bool large = (largeBuffersInUse + 1) * bounds.largeBuffer <= bounds.largeBufferBudget;
  const std::uint32_t port = freeHostPort();
  auto connection = std::make_unique<Connection>(port, guestPort, std::move(stream),
                                                 large ? bounds.largeBuffer : bounds.smallBuffer);
  connection->large = large;
  connection->deadline = now + bounds.request;
  if (large) ++largeBuffersInUse;
  enqueue(*connection);
  connections.emplace(port, std::move(connection));
  return port;
}

void Device::hostEvent(std::uint32_t hostPort, bool mayRead, bool mayWrite, bool hungUp,
                       TimePoint now) {
  const auto found = connections.find(hostPort);
  if (found == connections.end()) return;
  Connection& connection = *found->second;
  if (mayRead) connection.readable = true;
  if (hungUp) {
    clientHungUp(connection, now);
  } else if (mayWrite) {
    flush(connection, now);
  }
  if (hasWork(connection)) enqueue(connection);
  settle(connection);
}

bool Device::pump(TimePoint now) {
  if (!ready()) return false;
  bool more = pumpTx(now);
  if (ready()) more = pumpRx(now) || more;
  return more && ready();
}

void Device::tick(TimePoint now) {
  std::vector<std::uint32_t> due;
  for (const auto& [port, connection] : connections) {
    if (connection->deadline <= now ||
        (connection->starved && now - connection->starvedSince >= bounds.creditRequest)) {
      due.push_back(port);
    }
  }
  for (const std::uint32_t port : due) {
    const auto found = connections.find(port);
    if (found == connections.end()) continue;
    Connection& connection = *found->second;
    if (connection.deadline > now) {
      connection.owesCreditRequest = true;
      connection.starvedSince = now;
      enqueue(connection);
      continue;
    }
    ++counters.timedOut;
    switch (connection.state) {
      case Connection::State::REQUESTED:
      case Connection::State::OPEN:
      case Connection::State::CLOSING:
        reset(connection, now);
        break;
      case Connection::State::RESETTING:
      case Connection::State::DRAINING:
        connection.stream.reset();
        connection.state = Connection::State::DRAINING;
        break;
    }
    settle(connection);
  }
}

std::size_t Device::bufferedBytes() const {
  std::size_t sum = 0;
  for (const auto& [port, connection] : connections) sum += connection->toHost.size();
  return sum;
}

bool Device::hasWork(const Connection& connection) const {
  switch (connection.state) {
    case Connection::State::REQUESTED:
      return connection.owesRequest;
    case Connection::State::RESETTING:
      return true;
    case Connection::State::CLOSING:
      return connection.owesShutdown != 0;
    case Connection::State::DRAINING:
      return false;
    case Connection::State::OPEN:
      break;
  }
  return connection.owesCreditUpdate || connection.owesCreditRequest ||
         connection.owesShutdown != 0 ||
         (connection.mayReadClient() && (connection.send.available() > 0 || !connection.starved));
}

void Device::enqueue(Connection& connection) {
  if (connection.inService) return;
  connection.inService = true;
  service.push_back(connection.hostPort);
}

void Device::discardToHost(Connection& connection) {
  connection.receive.consume(static_cast<std::uint32_t>(connection.toHost.size()));
  connection.toHost.release();
}

void Device::flush(Connection& connection, TimePoint now) {
  while (connection.stream && !connection.toHost.empty()) {
    const auto pieces = connection.toHost.pieces();
    const IoResult result = connection.stream->write(pieces);
    if (result.kind == IoResult::Kind::BLOCKED) break;
    if (result.kind != IoResult::Kind::BYTES) {
      clientHungUp(connection, now);
      return;
    }
    connection.toHost.drop(result.bytes);
    connection.receive.consume(static_cast<std::uint32_t>(result.bytes));
    counters.toHostBytes += result.bytes;
    if (connection.state == Connection::State::DRAINING ||
        connection.state == Connection::State::RESETTING) {
      connection.deadline = now + bounds.draining;
    }
  }
  if (connection.state == Connection::State::OPEN) {
    if (connection.receive.worthTelling()) {
      connection.owesCreditUpdate = true;
      enqueue(connection);
    }
    if (connection.toHost.empty() && !connection.guestSends && !connection.writeEnded &&
        connection.stream) {
      connection.writeEnded = true;
      connection.stream->shutdownWrite();
    }
  } else if (connection.toHost.empty() && (connection.state == Connection::State::DRAINING ||
                                           connection.state == Connection::State::RESETTING)) {
    connection.stream.reset();
  }
}

void Device::reset(Connection& connection, TimePoint now) {
  connection.stream.reset();
  discardToHost(connection);
  connection.deadline = now + bounds.closing;
  // A request that never left needs no reset.
  connection.state = connection.state == Connection::State::REQUESTED && connection.owesRequest
                         ? Connection::State::DRAINING
                         : Connection::State::RESETTING;
  enqueue(connection);
}

void Device::violation(Connection& connection, TimePoint now) {
  ++counters.violations;
  reset(connection, now);
}

void Device::clientHungUp(Connection& connection, TimePoint now) {
  discardToHost(connection);
  switch (connection.state) {
    case Connection::State::REQUESTED:
      reset(connection, now);
      return;
    case Connection::State::CLOSING:
      return;
    case Connection::State::RESETTING:
    case Connection::State::DRAINING:
      connection.stream.reset();
      return;
    case Connection::State::OPEN:
      break;
  }
  if (connection.hungUp) return;
  connection.hungUp = true;
  connection.readable = true;
  connection.deadline = now + bounds.hungUp;
  if (!connection.mayReadClient()) clientGone(connection, now);
}

// Nothing is left to read from the client and nothing can be written to it.
void Device::clientGone(Connection& connection, TimePoint now) {
  connection.stream.reset();
  discardToHost(connection);
  connection.state = Connection::State::CLOSING;
  connection.owesShutdown = SHUTDOWN_BOTH;
  connection.starved = false;
  connection.deadline = now + bounds.closing;
  enqueue(connection);
}

// The guest neither sends nor receives any more. What it sent before still goes to the client.
void Device::guestDone(Connection& connection, Connection::State next, TimePoint now) {
  connection.state = next;
  connection.guestSends = connection.guestReceives = false;
  connection.deadline = now + bounds.draining;
  if (connection.stream) connection.stream->shutdownRead();
  flush(connection, now);
  if (next == Connection::State::RESETTING) enqueue(connection);
}

void Device::settle(Connection& connection) {
  if (connection.state != Connection::State::DRAINING || connection.stream) return;
  if (connection.large) --largeBuffersInUse;
  // Nothing else bounds the line while the guest gives no buffers.
  if (connection.inService) std::erase(service, connection.hostPort);
  connections.erase(connection.hostPort);
}

}  // namespace cordon::vsock
