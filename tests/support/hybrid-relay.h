// Stands where cordon-vsock stands: a hybrid socket in front of an agent that listens on a plain
// Unix socket, with the faults of a network between them. A thread of its own with an event loop of
// its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <thread>

#include <kj/time.h>

namespace cordon::tests {

struct RelayFaults {
  // Waited before the OK, and again before the first byte of the reply: two of them make the round
  // trips of a connection.
  kj::Duration roundTrip = 0 * kj::SECONDS;
  // The reply goes to the host one byte at a time.
  bool dribbles = false;
  // Whether and after how many bytes, in both directions together and the handshake not counted,
  // connection `number` (from 1) is cut.
  std::function<std::optional<std::uint64_t>(unsigned number)> cutAfter = nullptr;
  // The connection stays open after the agent closed it.
  bool neverCloses = false;
};

// About `percent` of the connections are cut, somewhere in their first `most` bytes; the same for
// the same seed.
std::function<std::optional<std::uint64_t>(unsigned)> randomCuts(std::uint32_t seed,
                                                                 unsigned percent,
                                                                 std::uint64_t most);

struct RelayAddress {
  std::string hybrid;  // where the host dials; must not exist yet
  std::string agent;   // where the agent listens; dialled anew for each connection
  // What SO_PEERCRED shows the host, and as whom the agent is dialled. Other than the own one only
  // for root.
  uid_t uid = 0;
  // Where the agent's socket is itself a hybrid one (a real cordon-vsock): the port to ask it for.
  std::optional<std::uint32_t> port = std::nullopt;
};

class HybridRelay {
 public:
  // Listens once this returns.
  explicit HybridRelay(RelayAddress address, RelayFaults faults = {});
  ~HybridRelay();
  HybridRelay(const HybridRelay&) = delete;
  HybridRelay& operator=(const HybridRelay&) = delete;

  [[nodiscard]] unsigned connections() const { return accepted.load(); }

 private:
  class Loop;
  void serve(int listener, int stop);

  RelayAddress address;
  RelayFaults faults;
  std::atomic<unsigned> accepted = 0;
  int stopPipe[2] = {-1, -1};
  std::thread thread;
};

}  // namespace cordon::tests
