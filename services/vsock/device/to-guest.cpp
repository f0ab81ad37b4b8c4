// The rx queue: what the guest receives.
#include <algorithm>
#include <array>
#include <cstring>

#include "services/vsock/device/device.h"

namespace cordon::vsock {

PacketHeader Device::headerFor(Connection& connection, std::uint16_t op) {
  PacketHeader header{};
  header.src_cid = HOST_CID;
  header.dst_cid = cid;
  header.src_port = connection.hostPort;
  header.dst_port = connection.guestPort;
  header.type = VIRTIO_VSOCK_TYPE_STREAM;
  header.op = op;
  header.buf_alloc = connection.receive.bufferSize();
  header.fwd_cnt = connection.receive.tell();
  return header;
}

void Device::writePacket(const Virtqueue::Chain& chain, const PacketHeader& header) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(&header);
  std::size_t done = 0;
  for (std::size_t i = 0; i < chain.count && done < HEADER_SIZE; ++i) {
    const std::size_t take = std::min(chain.segments[i].iov_len, HEADER_SIZE - done);
    std::memcpy(chain.segments[i].iov_base, from + done, take);
    done += take;
  }
  queues[RX_QUEUE].complete(chain, static_cast<std::uint32_t>(HEADER_SIZE) + header.len);
}

bool Device::pumpRx(TimePoint now) {
  Virtqueue& queue = queues[RX_QUEUE];
  Virtqueue::Chain chain;
  queue.suppressKicks();
  for (std::size_t sent = 0; !strays.empty() || !service.empty(); ++sent) {
    if (sent >= bounds.packetsPerPump) return true;
    switch (queue.peek(guestMemory, chain)) {
      case Virtqueue::Peek::EMPTY:
        if (queue.wantKicks()) continue;
        return false;
      case Virtqueue::Peek::BROKEN:
        breakDevice(RX_QUEUE);
        return false;
      case Virtqueue::Peek::READY:
        break;
    }
    if (chain.bytes <= HEADER_SIZE) {
      queue.breakWith(QueueFault::BUFFER_TOO_SMALL);
      breakDevice(RX_QUEUE);
      return false;
    }
    if (!strays.empty()) {
      const Stray stray = strays.front();
      strays.pop_front();
      PacketHeader header{};
      header.src_cid = HOST_CID;
      header.dst_cid = cid;
      header.src_port = stray.hostPort;
      header.dst_port = stray.guestPort;
      header.type = stray.type;
      header.op = VIRTIO_VSOCK_OP_RST;
      writePacket(chain, header);
      continue;
    }
    const std::uint32_t port = service.front();
    service.pop_front();
    const auto found = connections.find(port);
    if (found == connections.end()) continue;
    Connection& connection = *found->second;
    connection.inService = false;
    serve(connection, chain, now);
    if (hasWork(connection)) enqueue(connection);
    settle(connection);
  }
  return false;
}

// Sends at most one packet, so that no connection holds the queue for long.
void Device::serve(Connection& connection, const Virtqueue::Chain& chain, TimePoint now) {
  using State = Connection::State;
  switch (connection.state) {
    case State::REQUESTED:
      if (!connection.owesRequest) return;
      connection.owesRequest = false;
      writePacket(chain, headerFor(connection, VIRTIO_VSOCK_OP_REQUEST));
      return;
    case State::RESETTING:
      connection.state = State::DRAINING;
      writePacket(chain, headerFor(connection, VIRTIO_VSOCK_OP_RST));
      return;
    case State::DRAINING:
      return;
    case State::OPEN:
    case State::CLOSING:
      break;
  }
  if (connection.state == State::OPEN) {
    if (connection.owesCreditUpdate) {
      connection.owesCreditUpdate = false;
      writePacket(chain, headerFor(connection, VIRTIO_VSOCK_OP_CREDIT_UPDATE));
      return;
    }
    if (connection.mayReadClient() && connection.send.available() == 0 && !connection.starved) {
      connection.starved = true;
      connection.starvedSince = now;
      connection.owesCreditRequest = true;
    }
    if (connection.owesCreditRequest) {
      connection.owesCreditRequest = false;
      writePacket(chain, headerFor(connection, VIRTIO_VSOCK_OP_CREDIT_REQUEST));
      return;
    }
    if (connection.mayReadClient() && connection.send.available() > 0 &&
        sendBytes(connection, chain, now)) {
      return;
    }
  }
  if (connection.owesShutdown != 0) {
    PacketHeader header = headerFor(connection, VIRTIO_VSOCK_OP_SHUTDOWN);
    header.flags = connection.owesShutdown;
    connection.owesShutdown = 0;
    writePacket(chain, header);
  }
}

// From the client's socket into the guest's buffer, without a copy of our own. False if nothing was
// sent.
bool Device::sendBytes(Connection& connection, const Virtqueue::Chain& chain, TimePoint now) {
  std::array<iovec, Virtqueue::MAX_SEGMENTS> pieces;
  const std::size_t count =
      chain.slice(HEADER_SIZE, std::min(MAX_PAYLOAD, connection.send.available()), pieces);
  const IoResult result = connection.stream->read({pieces.data(), count});
  switch (result.kind) {
    case IoResult::Kind::BYTES: {
      PacketHeader header = headerFor(connection, VIRTIO_VSOCK_OP_RW);
      header.len = static_cast<std::uint32_t>(result.bytes);
      connection.send.spend(header.len);
      counters.toGuestBytes += result.bytes;
      writePacket(chain, header);
      return true;
    }
    case IoResult::Kind::BLOCKED:
      connection.readable = false;
      return false;
    case IoResult::Kind::ENDED:
      connection.clientEnded = true;
      if (connection.hungUp) {
        clientGone(connection, now);
      } else {
        connection.owesShutdown = VIRTIO_VSOCK_SHUTDOWN_SEND;
      }
      return false;
    case IoResult::Kind::FAILED:
      clientGone(connection, now);
      return false;
  }
  return false;
}

}  // namespace cordon::vsock
