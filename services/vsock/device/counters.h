// What the device counted since it started. Numbers only: nothing of a guest's choosing is ever
// logged.
#pragma once

#include <cstdint>

namespace cordon::vsock {

struct Counters {
  std::uint64_t accepted = 0;       // hybrid connections taken
  std::uint64_t opened = 0;         // answered by OK
  std::uint64_t badHandshakes = 0;  // no CONNECT line, or too late
  std::uint64_t overCap = 0;        // closed because MAX_CONNECTIONS are in use
  std::uint64_t notReady = 0;       // closed because the guest's driver is not there
  std::uint64_t guestRefused = 0;   // reset by the guest instead of accepted
  std::uint64_t timedOut = 0;       // ended by a deadline
  std::uint64_t toGuestBytes = 0;
  std::uint64_t toHostBytes = 0;
  std::uint64_t guestDials = 0;    // connections that the guest asked for, all reset
  std::uint64_t wrongAddress = 0;  // packets with another source or destination CID, dropped
  std::uint64_t wrongType = 0;     // no stream; reset
  std::uint64_t unknownConnection = 0;
  std::uint64_t malformed = 0;  // packets whose lengths contradict each other
  std::uint64_t violations =
      0;  // packets that no honest driver sends in that state: the connection is reset
  std::uint64_t creditLies = 0;     // more than granted was sent, or more consumed than was sent
  std::uint64_t resetsDropped = 0;  // answers to strays that found no room
  std::uint64_t queueFaults = 0;
  std::uint64_t ringStarts = 0;

  bool operator==(const Counters&) const = default;
};

}  // namespace cordon::vsock
