// Bulk and round trips through the real cordon-vsock, sandboxed, with a simulated guest on the
// other side of its rings, against a bare Unix socketpair in the same run.
#include <array>
#include <cstring>
#include <ctime>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <benchmark/benchmark.h>

#include "services/vsock/testing/vsock-process.h"

namespace {

using namespace cordon::vsock;
using namespace cordon::vsock::testing;

constexpr std::size_t BULK = 256U << 20;
constexpr std::size_t PIECE = std::size_t{64} * 1024;

void readExactly(int fd, std::size_t bytes) {
  static thread_local std::vector<char> buffer(1 << 18);
  while (bytes > 0) {
    const ssize_t got = ::read(fd, buffer.data(), std::min(buffer.size(), bytes));
    require(got > 0, "read");
    bytes -= static_cast<std::size_t>(got);
  }
}

void writeExactly(int fd, std::size_t bytes) {
  static const std::vector<char> buffer(PIECE, 'x');
  while (bytes > 0) {
    const ssize_t put = ::send(fd, buffer.data(), std::min(buffer.size(), bytes), MSG_NOSIGNAL);
    require(put > 0, "write");
    bytes -= static_cast<std::size_t>(put);
  }
}

// CPU time of this process and of the device, which says more than the wall clock where other work
// runs.
class CpuTime {
 public:
  explicit CpuTime(pid_t device = 0) : pid(device), start(now()) {}
  double seconds() const { return now() - start; }

 private:
  double now() const { return of(CLOCK_PROCESS_CPUTIME_ID) + deviceTime(); }
  double deviceTime() const {
    clockid_t clock{};
    return pid != 0 && ::clock_getcpuclockid(pid, &clock) == 0 ? of(clock) : 0;
  }
  static double of(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }

  pid_t pid;
  double start;
};

void reportBulk(benchmark::State& state, const CpuTime& cpu) {
  const auto bytes = static_cast<double>(state.iterations()) * static_cast<double>(BULK);
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
  state.counters["cpu_s_per_GiB"] = cpu.seconds() / (bytes / (1U << 30));
}

void reportRoundTrips(benchmark::State& state, const CpuTime& cpu) {
  state.counters["cpu_us_each"] = cpu.seconds() * 1e6 / static_cast<double>(state.iterations());
}

struct Pair {
  Pair() {
    std::array<int, 2> ends{};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "socketpair");
    one = Fd(ends[0]);
    other = Fd(ends[1]);
  }
  Fd one;
  Fd other;
};

// One open connection through the device; what the guest does is the benchmark's.
class Connected {
 public:
  // Linux gives rx buffers of 4096 bytes and a header.
  explicit Connected(std::size_t rxBuffer)
      : peer(10000, rxBuffer), process(CORDON_VSOCK_BINARY, peer) {
    peer.start();
    peer.guest->offer();
    peer.send(Request::GET_QUEUE_NUM);
    require(peer.replyNumber() == 2, "start");
    client = process.dial();
    require(::send(client.get(), "CONNECT 5000\n", 13, 0) == 13, "CONNECT");
    port = next().header.src_port;
    send(VIRTIO_VSOCK_OP_RESPONSE, {});
    char answer[64];
    require(::recv(client.get(), answer, sizeof(answer), 0) > 0, "OK");
  }
  // The next packet for the guest, asleep until there is one.
  const Packet& next() {
    while (!peer.guest->take(packet)) {
      peer.kick(RX_QUEUE);
      if (peer.guest->take(packet)) break;
      pollfd wait{peer.calls[RX_QUEUE].get(), POLLIN, 0};
      ::poll(&wait, 1, -1);
      std::uint64_t count;
      [[maybe_unused]] const ssize_t ignored = ::read(wait.fd, &count, sizeof(count));
    }
    received += packet.header.len;
    if (packet.header.op == VIRTIO_VSOCK_OP_CREDIT_UPDATE)
      granted = packet.header.fwd_cnt + packet.header.buf_alloc;
    return packet;
  }
  void send(std::uint16_t op, std::string_view payload) {
    PacketHeader header = peer.guest->header(port, 5000, op);
    header.len = static_cast<std::uint32_t>(payload.size());
    header.fwd_cnt = received;
    while (!peer.guest->send(header, payload)) std::this_thread::yield();
    sent += header.len;
    if (peer.guest->flags(TX_QUEUE, SimulatedGuest::USED_OFFSET).load() == 0) peer.kick(TX_QUEUE);
  }

  FrontEndPeer peer;
  VsockProcess process;
  Fd client;
  std::uint32_t port = 0;
  std::uint32_t received = 0;
  std::uint32_t sent = 0;
  std::uint32_t granted = 256 * 1024;
  Packet packet;
};

void socketpairBulk(benchmark::State& state) {
  Pair pair;
  const CpuTime cpu;
  for (auto _ : state) {
    std::thread writer([&] { writeExactly(pair.one.get(), BULK); });
    readExactly(pair.other.get(), BULK);
    writer.join();
  }
  reportBulk(state, cpu);
}
BENCHMARK(socketpairBulk)->UseRealTime()->Unit(benchmark::kMillisecond);

void toGuestBulk(benchmark::State& state) {
  Connected connected(static_cast<std::size_t>(state.range(0)) + HEADER_SIZE);
  const CpuTime cpu(connected.process.id());
  for (auto _ : state) {
    std::thread writer([&] { writeExactly(connected.client.get(), BULK); });
    std::uint32_t told = connected.received;
    for (std::size_t left = BULK; left > 0;) {
      left -= connected.next().header.len;
      if (connected.received - told >= 128 * 1024 || left == 0) {
        connected.send(VIRTIO_VSOCK_OP_CREDIT_UPDATE, {});
        told = connected.received;
      }
    }
    writer.join();
  }
  reportBulk(state, cpu);
}
BENCHMARK(toGuestBulk)->Arg(4096)->Arg(PIECE)->UseRealTime()->Unit(benchmark::kMillisecond);

void toHostBulk(benchmark::State& state) {
  Connected connected(4096 + HEADER_SIZE);
  const std::string piece(PIECE, 'x');
  const CpuTime cpu(connected.process.id());
  for (auto _ : state) {
    std::thread reader([&] { readExactly(connected.client.get(), BULK); });
    for (std::size_t left = BULK; left > 0; left -= PIECE) {
      while (connected.granted - connected.sent < PIECE) connected.next();
      connected.send(VIRTIO_VSOCK_OP_RW, piece);
    }
    reader.join();
  }
  reportBulk(state, cpu);
}
BENCHMARK(toHostBulk)->UseRealTime()->Unit(benchmark::kMillisecond);

void socketpairRoundTrip(benchmark::State& state) {
  Pair pair;
  std::thread echo([&] {
    char byte;
    while (::read(pair.other.get(), &byte, 1) == 1) {
      require(::write(pair.other.get(), &byte, 1) == 1, "echo");
    }
  });
  char byte = 'x';
  const CpuTime cpu;
  for (auto _ : state) {
    require(::write(pair.one.get(), &byte, 1) == 1 && ::read(pair.one.get(), &byte, 1) == 1,
            "round trip");
  }
  reportRoundTrips(state, cpu);
  ::shutdown(pair.one.get(), SHUT_WR);
  echo.join();
}
BENCHMARK(socketpairRoundTrip)->UseRealTime()->Unit(benchmark::kMicrosecond);

void vsockRoundTrip(benchmark::State& state) {
  Connected connected(4096 + HEADER_SIZE);
  std::thread echo([&] {
    for (;;) {
      const Packet& packet = connected.next();
      if (packet.header.op == VIRTIO_VSOCK_OP_SHUTDOWN) return;
      if (packet.header.op == VIRTIO_VSOCK_OP_RW)
        connected.send(VIRTIO_VSOCK_OP_RW, packet.payload);
    }
  });
  char byte = 'x';
  const CpuTime cpu(connected.process.id());
  for (auto _ : state) {
    require(::write(connected.client.get(), &byte, 1) == 1 &&
                ::read(connected.client.get(), &byte, 1) == 1,
            "round trip");
  }
  reportRoundTrips(state, cpu);
  ::shutdown(connected.client.get(), SHUT_WR);
  echo.join();
}
BENCHMARK(vsockRoundTrip)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
