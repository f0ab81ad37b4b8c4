// The device against a guest whose memory, rings and packets are the fuzzer's, and clients that
// come and go meanwhile.
//
// Input: a sequence of steps, one byte of verb and its operands each. Checked besides the
// sanitizers: the device comes to rest, its buffers stay below their bound, and no more connections
// live than the cap allows.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "services/vsock/device/device.h"
#include "services/vsock/testing/fake-stream.h"
#include "services/vsock/testing/simulated-guest.h"

namespace {

using cordon::vsock::Device;
using cordon::vsock::Limits;
using cordon::vsock::MemoryRegion;
using cordon::vsock::QUEUE_COUNT;
using cordon::vsock::RingDescriptor;
using cordon::vsock::TimePoint;
using cordon::vsock::testing::FakeClient;
using cordon::vsock::testing::FakeStream;
using cordon::vsock::testing::SimulatedGuest;

constexpr std::uint64_t CID = 3;
constexpr std::uint32_t FIRST_PORT = 1U << 30;
constexpr std::size_t MAX_STEPS = 2000;

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : at(data), left(size) {}
  bool empty() const { return left == 0; }
  template <typename T>
  T take() {
    T value{};
    const std::size_t count = std::min(left, sizeof(T));
    std::memcpy(&value, at, count);
    at += count;
    left -= count;
    return value;
  }

 private:
  const std::uint8_t* at;
  std::size_t left;
};

Limits smallLimits() {
  Limits limits;
  limits.connections = 8;
  limits.largeBuffer = 4096;
  limits.smallBuffer = 512;
  limits.largeBufferBudget = 3 * 4096;
  limits.strayResets = 8;
  limits.packetsPerPump = 16;
  return limits;
}

class Scene {
 public:
  explicit Scene(std::uint8_t* memory) : device(CID, smallLimits()), guest(memory, CID, 600) {
    const MemoryRegion region = guest.region();
    // Two regions, so that buffers can cross from one into the other.
    const std::uint64_t half = 0x40000;
    const MemoryRegion regions[2] = {
        {region.guestAddress, half, region.frontEndAddress, region.host},
        {region.guestAddress + half, region.size - half, region.frontEndAddress + half,
         region.host + half}};
    require(device.memory().assign(regions));
    startAll(0);
  }

  void step(Input& input) {
    const auto verb = input.take<std::uint8_t>();
    switch (verb % 16) {
      case 0:
        dial();
        break;
      case 1:
        clientEvent(input);
        break;
      case 2:
      case 3:
      case 4:
        sendPacket(input);
        break;
      case 5: {
        const auto at =
            static_cast<std::uint16_t>(input.take<std::uint8_t>() % SimulatedGuest::RING_SIZE);
        guest.describe(verb & 0x80 ? 0 : 1, at, input.take<RingDescriptor>());
        break;
      }
      case 6:
        guest.publish(verb & 0x80 ? 0 : 1, input.take<std::uint16_t>());
        break;
      case 7:
        guest.offer(static_cast<std::uint16_t>(input.take<std::uint8_t>() % 8));
        break;
      case 8:
        // Gives back what came. What it says is never read: the used ring may be the fuzzer's as
        // well.
        if (guest.index(0, SimulatedGuest::USED_OFFSET).load() != taken) {
          ++taken;
          guest.offer(1);
        }
        break;
      case 9:
        guest
            .index(verb & 0x80 ? 0 : 1,
                   verb & 0x40 ? SimulatedGuest::AVAILABLE_OFFSET : SimulatedGuest::USED_OFFSET)
            .store(input.take<std::uint16_t>());
        break;
      case 10:
        now += std::chrono::milliseconds(input.take<std::uint16_t>());
        device.tick(now);
        break;
      case 11:
        restart(input);
        break;
      case 12:
        near(input);
        break;
      default:
        break;
    }
    work();
  }

 private:
  static void require(bool holds) {
    if (!holds) std::abort();
  }
  void startAll(std::uint16_t base) {
    for (std::size_t queue = 0; queue < QUEUE_COUNT; ++queue) {
      device.startQueue(queue, guest.rings(queue), SimulatedGuest::RING_SIZE, base);
    }
  }
  void work() {
    // Nothing changes the rings meanwhile, so the work is finite.
    for (int turns = 0; device.pump(now); ++turns) require(turns < 10'000);
    for (std::size_t queue = 0; queue < QUEUE_COUNT; ++queue) device.takeInterrupt(queue);
    if (device.takeFault()) require(!device.ready() && device.connectionCount() == 0);
    require(device.connectionCount() <= device.limits().connections);
    require(device.bufferedBytes() <= 3 * 4096 + 8 * 512);
  }
  void dial() {
    auto client = std::make_shared<FakeClient>();
    client->keeps = false;
    client->sendsMore = 5000;
    if (const auto port = device.connect(std::make_unique<FakeStream>(client), 5000, now)) {
      require(*port >= FIRST_PORT);
      clients.push_back(client);
    } else {
      require(client->closed);
    }
  }
  void clientEvent(Input& input) {
    const auto which = input.take<std::uint8_t>();
    const auto what = input.take<std::uint8_t>();
    if (clients.empty()) return;
    const std::size_t index = which % clients.size();
    FakeClient& client = *clients[index];
    client.sendsMore += (what & 1) != 0 ? 700 : 0;
    client.ended = client.ended || (what & 2) != 0;
    client.gone = client.gone || (what & 4) != 0;
    client.room = (what & 8) != 0 ? 0 : (what & 16) != 0 ? 100 : SIZE_MAX;
    device.hostEvent(FIRST_PORT + static_cast<std::uint32_t>(index), true, true, (what & 32) != 0,
                     now);
  }
  void sendPacket(Input& input) {
    const auto which = input.take<std::uint8_t>();
    auto header = guest.header(FIRST_PORT + which % 16, 5000, input.take<std::uint8_t>());
    header.len = input.take<std::uint16_t>();
    const auto lies = input.take<std::uint8_t>();
    header.flags = lies & 3;
    if ((lies & 4) != 0) header.fwd_cnt = input.take<std::uint32_t>();
    if ((lies & 8) != 0) header.buf_alloc = input.take<std::uint32_t>();
    if ((lies & 16) != 0) header.src_port = input.take<std::uint32_t>();
    if ((lies & 32) != 0) header.type = input.take<std::uint16_t>();
    if ((lies & 64) != 0) header.src_cid = input.take<std::uint64_t>();
    static const std::string ZEROES(4096, '\0');
    const std::size_t carried =
        (lies & 128) != 0 ? input.take<std::uint16_t>() % 4096 : header.len % 4096U;
    guest.send(header, std::string_view(ZEROES).substr(0, carried));
  }
  // An honest answer to the newest request, without which little of the rest is ever reached.
  void near(Input& input) {
    const auto which = input.take<std::uint8_t>();
    if (clients.empty()) return;
    guest.send(guest.header(FIRST_PORT + static_cast<std::uint32_t>(which % clients.size()), 5000,
                            VIRTIO_VSOCK_OP_RESPONSE));
  }
  void restart(Input& input) {
    const auto how = input.take<std::uint8_t>();
    const std::uint16_t base = device.stopQueue(0);
    device.stopQueue(1);
    require(device.connectionCount() == 0);
    if ((how & 1) != 0) {
      guest.forget();
      taken = 0;
    }
    startAll((how & 1) != 0 ? 0 : base);
  }

  Device device;
  SimulatedGuest guest;
  std::vector<std::shared_ptr<FakeClient>> clients;  // the one at i had host port FIRST_PORT + i
  std::uint16_t taken = 0;
  TimePoint now{std::chrono::hours(1)};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  alignas(4096) static std::uint8_t memory[SimulatedGuest::MEMORY_SIZE];
  std::memset(memory, 0, 0x10000);
  Scene scene(memory);
  Input input(data, size);
  for (std::size_t steps = 0; !input.empty() && steps < MAX_STEPS; ++steps) scene.step(input);
  return 0;
}
