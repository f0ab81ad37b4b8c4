// The tx queue: what the guest sends.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "services/vsock/device/device.h"

namespace cordon::vsock {
namespace {

// Copies the first HEADER_SIZE bytes of a chain that has them.
PacketHeader readHeader(const Virtqueue::Chain& chain) {
  std::array<std::uint8_t, HEADER_SIZE> bytes;
  std::size_t have = 0;
  for (std::size_t i = 0; i < chain.count && have < HEADER_SIZE; ++i) {
    const std::size_t take = std::min(chain.segments[i].iov_len, HEADER_SIZE - have);
    std::memcpy(bytes.data() + have, chain.segments[i].iov_base, take);
    have += take;
  }
  PacketHeader header;
  std::memcpy(&header, bytes.data(), HEADER_SIZE);
  return header;
}

}  // namespace

bool Device::pumpTx(TimePoint now) {
  Virtqueue& queue = queues[TX_QUEUE];
  Virtqueue::Chain chain;
  queue.suppressKicks();
  for (std::size_t taken = 0; taken < bounds.packetsPerPump; ++taken) {
    switch (queue.peek(guestMemory, chain)) {
      case Virtqueue::Peek::EMPTY:
        if (queue.wantKicks()) continue;
        return false;
      case Virtqueue::Peek::BROKEN:
        breakDevice(TX_QUEUE);
        return false;
      case Virtqueue::Peek::READY:
        break;
    }
    if (chain.bytes < HEADER_SIZE) {
      queue.breakWith(QueueFault::BUFFER_TOO_SMALL);
      breakDevice(TX_QUEUE);
      return false;
    }
    receive(chain, now);
    queue.complete(chain, 0);
  }
  return true;
}

void Device::receive(const Virtqueue::Chain& chain, TimePoint now) {
  const PacketHeader header = readHeader(chain);
  if (header.src_cid != cid || header.dst_cid != HOST_CID) {
    ++counters.wrongAddress;
    return;
  }
  if (header.type != VIRTIO_VSOCK_TYPE_STREAM) {
    ++counters.wrongType;
    answerStray(header);
    return;
  }
  const auto found = connections.find(header.dst_port);
  const bool known = found != connections.end() && found->second->guestPort == header.src_port &&
                     found->second->state != Connection::State::DRAINING;
  // Only RW carries bytes, and no more than its chain has.
  const bool malformed = header.len > chain.bytes - HEADER_SIZE || header.len > MAX_PAYLOAD ||
                         (header.len != 0 && header.op != VIRTIO_VSOCK_OP_RW);
  if (malformed) ++counters.malformed;
  if (header.op == VIRTIO_VSOCK_OP_REQUEST) ++counters.guestDials;
  if (!known) {
    // Linux sends a second reset when a socket that our shutdown ended is closed.
    const bool expected = header.op == VIRTIO_VSOCK_OP_REQUEST || header.op == VIRTIO_VSOCK_OP_RST;
    if (!malformed && !expected) ++counters.unknownConnection;
    answerStray(header);
    return;
  }
  Connection& connection = *found->second;
  if (malformed) {
    reset(connection, now);
  } else {
    receiveFor(connection, header, chain, now);
  }
  settle(connection);
}

void Device::answerStray(const PacketHeader& header) {
  if (header.op == VIRTIO_VSOCK_OP_RST) return;
  if (strays.size() >= bounds.strayResets) {
    // To hold the tx queue back instead could deadlock with a driver that holds its rx queue back
    // until we took more.
    ++counters.resetsDropped;
    return;
  }
  strays.push_back({header.dst_port, header.src_port, header.type});
}

void Device::receiveFor(Connection& connection, const PacketHeader& header,
                        const Virtqueue::Chain& chain, TimePoint now) {
  using State = Connection::State;
  if (header.op == VIRTIO_VSOCK_OP_RST) {
    if (connection.state == State::REQUESTED) {
      ++counters.guestRefused;
      connection.stream.reset();
    }
    guestDone(connection, State::DRAINING, now);
    return;
  }
  if (connection.state == State::RESETTING) return;  // sent before our reset arrives there
  if (connection.state == State::REQUESTED &&
      (header.op != VIRTIO_VSOCK_OP_RESPONSE || connection.owesRequest)) {
    violation(connection, now);
    return;
  }
  switch (connection.send.update(header.buf_alloc, header.fwd_cnt)) {
    case SendCredit::Update::LIE:
      ++counters.creditLies;
      reset(connection, now);
      return;
    case SendCredit::Update::ACCEPTED:
      if (connection.send.available() > 0) connection.starved = false;
      break;
    case SendCredit::Update::STALE:
      break;
  }
  switch (header.op) {
    case VIRTIO_VSOCK_OP_RESPONSE:
      receiveResponse(connection, now);
      break;
    case VIRTIO_VSOCK_OP_RW:
      receivePayload(connection, chain, header.len, now);
      break;
    case VIRTIO_VSOCK_OP_SHUTDOWN:
      receiveShutdown(connection, header.flags, now);
      break;
    case VIRTIO_VSOCK_OP_CREDIT_UPDATE:
      break;
    case VIRTIO_VSOCK_OP_CREDIT_REQUEST:
      connection.owesCreditUpdate = true;
      break;
    default:
      violation(connection, now);
      break;
  }
  if (hasWork(connection)) enqueue(connection);
}

void Device::receiveResponse(Connection& connection, TimePoint now) {
  if (connection.state != Connection::State::REQUESTED) {
    violation(connection, now);
    return;
  }
  std::string line = "OK " + std::to_string(connection.hostPort) + "\n";
  const std::array<iovec, 1> piece{{{line.data(), line.size()}}};
  const IoResult result = connection.stream->write(piece);
  if (result.kind != IoResult::Kind::BYTES || result.bytes != line.size()) {
    reset(connection, now);  // a socket with nothing in it takes a line, unless its client is gone
    return;
  }
  ++counters.opened;
  connection.state = Connection::State::OPEN;
  connection.deadline = TimePoint::max();
}

void Device::receivePayload(Connection& connection, const Virtqueue::Chain& chain,
                            std::uint32_t bytes, TimePoint now) {
  if (!connection.guestSends) {
    violation(connection, now);
    return;
  }
  if (!connection.receive.receive(bytes)) {
    ++counters.creditLies;
    reset(connection, now);
    return;
  }
  std::array<iovec, Virtqueue::MAX_SEGMENTS> pieces;
  const std::size_t count = chain.slice(HEADER_SIZE, bytes, pieces);

  std::size_t written = 0;
  if (connection.stream && !connection.hungUp && connection.toHost.empty() && count > 0) {
    const IoResult result = connection.stream->write({pieces.data(), count});
    if (result.kind == IoResult::Kind::BYTES) {
      written = result.bytes;
      counters.toHostBytes += written;
    } else if (result.kind != IoResult::Kind::BLOCKED) {
      clientHungUp(connection, now);
    }
  }
  // A client that is gone reads everything, at once.
  if (!connection.stream || connection.hungUp) written = bytes;
  connection.receive.consume(static_cast<std::uint32_t>(written));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t passed = std::min(written, pieces[i].iov_len);
    written -= passed;
    // Cannot fail: the credit just checked is the ring's capacity.
    connection.toHost.append({static_cast<const std::uint8_t*>(pieces[i].iov_base) + passed,
                              pieces[i].iov_len - passed});
  }
  if (connection.receive.worthTelling()) connection.owesCreditUpdate = true;
}

void Device::receiveShutdown(Connection& connection, std::uint32_t flags, TimePoint now) {
  if ((flags & VIRTIO_VSOCK_SHUTDOWN_RCV) != 0) connection.guestReceives = false;
  if ((flags & VIRTIO_VSOCK_SHUTDOWN_SEND) != 0) connection.guestSends = false;
  if (!connection.guestReceives && !connection.guestSends) {
    guestDone(connection, Connection::State::RESETTING, now);
    return;
  }
  if (connection.state != Connection::State::OPEN) return;
  if (!connection.guestReceives && connection.stream) {
    connection.stream->shutdownRead();
    if (connection.hungUp) {
      clientGone(connection, now);
      return;
    }
  }
  flush(connection, now);
}

}  // namespace cordon::vsock
