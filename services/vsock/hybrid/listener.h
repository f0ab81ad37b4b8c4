// The hybrid Unix socket: accepts clients, reads their CONNECT line to the byte, hands them to the
// device.
//
// A client is closed without an answer if it does not send its line in time, if the line is no
// CONNECT line, if the device is full, if the guest refuses, and also if the guest's driver is not
// there (yet): to hold it would hide a guest that never comes up behind a deadline of ours, while a
// client that dials again sees it at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "services/vsock/device/device.h"
#include "services/vsock/fd.h"
#include "services/vsock/poller.h"

namespace cordon::vsock {

class HybridListener {
 public:
  static constexpr std::chrono::milliseconds HANDSHAKE_DEADLINE{5'000};
  static constexpr std::size_t ACCEPTS_PER_TURN = 64;

  // `socket` listens and is non-blocking; it stays the caller's. maxClients bounds handshakes and
  // connections together.
  HybridListener(int socket, std::size_t maxClients, Device& device, Poller& poller);

  // The listener may have clients. Watched edge-triggered, so what one turn leaves is taken up by
  // tick().
  void onAcceptable(TimePoint now);
  void onHandshake(std::uint32_t number, TimePoint now);
  void tick(TimePoint now);
  bool hasHandshakes() const { return !handshakes.empty(); }
  bool wantsTurn() const { return moreToAccept; }

 private:
  struct Handshake {
    Fd socket;
    std::string line;
    TimePoint deadline;
  };
  enum class Progress : std::uint8_t { WAITS, DONE };

  Progress advance(Handshake& handshake, TimePoint now);
  void handOver(Handshake& handshake, std::uint32_t guestPort, TimePoint now);

  int fd;
  std::size_t maxClients;
  Device& device;
  Poller& poller;
  std::unordered_map<std::uint32_t, Handshake> handshakes;
  std::uint32_t nextNumber = 0;
  bool moreToAccept = false;
};

}  // namespace cordon::vsock
