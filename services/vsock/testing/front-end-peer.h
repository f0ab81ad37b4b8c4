// The front end's side of a vhost-user socket, with guest memory in a memfd and a simulated guest
// in it: QEMU's part, honest or not, for tests and the benchmark.
#pragma once

#include <array>
#include <cstdint>
#include <fcntl.h>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "services/vsock/device/device.h"
#include "services/vsock/fd.h"
#include "services/vsock/testing/simulated-guest.h"
#include "services/vsock/vhost-user/message.h"

namespace cordon::vsock::testing {

// Throws with errno's text: what a test stands on did not hold.
void require(bool holds, const char* what);

// A memfd of `size` bytes with these seals.
Fd makeMemory(std::size_t size, int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);

class FrontEndPeer {
 public:
  explicit FrontEndPeer(std::uint64_t cid = 10000, std::size_t rxBuffer = SimulatedGuest::BUFFER);
  FrontEndPeer(const FrontEndPeer&) = delete;
  ~FrontEndPeer();

  void send(Request request, std::span<const std::uint8_t> payload, std::span<const int> fds = {},
            std::uint32_t flags = PROTOCOL_VERSION);
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void send(Request request, const T& value, std::initializer_list<int> fds = {},
            std::uint32_t flags = PROTOCOL_VERSION) {
    send(request, std::span(reinterpret_cast<const std::uint8_t*>(&value), sizeof(value)),
         std::span(fds.begin(), fds.size()), flags);
  }
  void send(Request request) { send(request, std::span<const std::uint8_t>{}); }
  void sendRaw(std::span<const std::uint8_t> bytes, std::span<const int> fds = {});
  // The next reply's payload; its header in `header`.
  std::vector<std::uint8_t> reply(MessageHeader& header);
  std::uint64_t replyNumber();

  // ---- What QEMU sends, in its order
  void negotiate();
  void sendMemory();
  void setUpRing(std::uint32_t queue);
  void start();
  void startRings();
  // Returns the base of each ring.
  std::array<std::uint32_t, QUEUE_COUNT> stopRings();
  void kick(std::size_t queue);

  Fd socket;
  Fd backEnd;  // the device's end
  Fd memory;
  std::array<Fd, QUEUE_COUNT> kicks;
  std::array<Fd, QUEUE_COUNT> calls;
  std::unique_ptr<SimulatedGuest> guest;
  std::uint8_t* mapped = nullptr;
};

}  // namespace cordon::vsock::testing
