// Flow control of a stream (virtio 1.2, §5.10.6.3), each direction by itself. All counters are 32
// bits wide, count bytes since the connection began and wrap around.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cordon::vsock {

// What we may still send. The peer says how large its buffer is and how much of it was consumed;
// both may be lies.
class SendCredit {
 public:
  enum class Update : std::uint8_t {
    ACCEPTED,
    STALE,  // a count from before the newest one: two threads of an honest peer can swap packets.
            // Nothing changes
    LIE,    // more was consumed than was ever sent
  };

  // No peer gets more in flight than this, whatever it claims: it keeps stale and lying counts
  // apart.
  static constexpr std::uint32_t MAX_IN_FLIGHT = 64U << 20;

  explicit SendCredit(std::uint32_t start = 0) : sent(start), consumed(start) {}

  Update update(std::uint32_t peerBuffer, std::uint32_t peerConsumed) {
    const std::uint32_t advance = peerConsumed - consumed;
    if (advance > inFlight()) {
      return advance < 1U << 31 ? Update::LIE : Update::STALE;
    }
    consumed = peerConsumed;
    buffer = std::min(peerBuffer, MAX_IN_FLIGHT);
    return Update::ACCEPTED;
  }
  // A peer may shrink its buffer below what is in flight; that is no credit, not a huge one.
  std::uint32_t available() const { return inFlight() < buffer ? buffer - inFlight() : 0; }
  void spend(std::uint32_t bytes) { sent += bytes; }

 private:
  std::uint32_t inFlight() const { return sent - consumed; }

  std::uint32_t sent;
  std::uint32_t consumed;
  std::uint32_t buffer = 0;
};

// What the peer may still send to us.
class ReceiveCredit {
 public:
  explicit ReceiveCredit(std::uint32_t bufferSize, std::uint32_t start = 0)
      : size(bufferSize), received(start), consumed(start), told(start) {}

  // False, and nothing is counted, if the peer sends more than it was ever granted.
  bool receive(std::uint32_t bytes) {
    if (bytes > size - (received - consumed)) return false;
    received += bytes;
    return true;
  }
  void consume(std::uint32_t bytes) { consumed += bytes; }

  // Whether the peer must hear of what was consumed: it believes that less than half of the buffer
  // is free, and more is.
  bool worthTelling() const { return consumed != told && size - (received - told) < size / 2; }
  // What a header says; it is then told.
  std::uint32_t bufferSize() const { return size; }
  std::uint32_t tell() { return told = consumed; }

 private:
  std::uint32_t size;
  std::uint32_t received;
  std::uint32_t consumed;
  std::uint32_t told;
};

}  // namespace cordon::vsock
