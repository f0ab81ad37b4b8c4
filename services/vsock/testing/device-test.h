// The fixture that has a device, a guest and clients without sockets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "services/vsock/device/device.h"
#include "services/vsock/testing/fake-stream.h"
#include "services/vsock/testing/simulated-guest.h"

namespace cordon::vsock::testing {

class DeviceTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t CID = 10000;
  static constexpr std::uint32_t PORT = 5000;

  struct Opened {
    std::shared_ptr<FakeClient> client;
    std::uint32_t hostPort = 0;
  };

  explicit DeviceTest(Limits limits = {}, std::size_t rxBuffer = SimulatedGuest::BUFFER)
      : storage(SimulatedGuest::MEMORY_SIZE + 4096),
        device(CID, limits),
        guest(align(storage), CID, rxBuffer) {
    const MemoryRegion region = guest.region();
    EXPECT_TRUE(device.memory().assign({&region, 1}));
    startRings();
  }

  void startRings(std::uint16_t base = 0);
  void pump();
  // The next packet after all work is done.
  bool next(Packet& packet);
  Packet expect(std::uint16_t op);
  void expectSilence();
  void send(const Opened& to, std::uint16_t op, std::string_view payload = {},
            std::uint32_t flags = 0);
  Opened dial();
  Opened open();
  void clientEvent(const Opened& opened, bool hungUp = false);

  std::vector<std::uint8_t> storage;
  Device device;
  SimulatedGuest guest;
  std::uint32_t guestConsumed = 0;
  TimePoint now{std::chrono::hours(1)};

 private:
  static std::uint8_t* align(std::vector<std::uint8_t>& bytes) {
    void* where = bytes.data();
    std::size_t space = bytes.size();
    return static_cast<std::uint8_t*>(std::align(4096, SimulatedGuest::MEMORY_SIZE, where, space));
  }
};

}  // namespace cordon::vsock::testing
