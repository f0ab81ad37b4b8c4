// What the way from a caller to a guest costs: one exec round trip (with its ack, where there is
// one) over three ways, and the parser's memory. Needs root; boots one real guest. Usage:
// cordon_exec_bench [ITERATIONS]
//
//   bare     the agent on this host, over its Unix socket, spoken to by the codec alone
//   parser   the same agent, through the sandboxed parser's RPC (and the relay that plays the
//            hybrid socket)
//   guest    the agent in a guest, through the sandboxed parser's RPC and cordon-vsock
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <variant>
#include <vector>

#include "common/channel/decoder.h"
#include "common/channel/encoder.h"
#include "tests/support/guest-process.h"
#include "tests/support/hybrid-relay.h"
#include "tests/support/rpc-client.h"
#include "tests/support/temporary-directory.h"
#include "tests/vm/booted-range.h"

namespace cordon {
namespace {

using Clock = std::chrono::steady_clock;

channel::Exec command() {
  return {.cmd = {"/bin/true"}};
}

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

// One message to the agent and one back, on a connection of its own.
channel::Message exchange(const std::string& socketPath, const channel::Message& request) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(fd >= 0, "socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socketPath.c_str(), sizeof(address.sun_path) - 1);
  require(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0,
          "connect");
  const auto frames = std::get<std::string>(channel::encodeControl(request));
  require(::write(fd, frames.data(), frames.size()) == static_cast<ssize_t>(frames.size()),
          "write");
  channel::Decoder decoder(channel::EXEC_REPLY_BULK_CAP);
  std::vector<std::byte> buffer(65536);
  for (bool done = false; !done;) {
    const ssize_t size = ::read(fd, buffer.data(), buffer.size());
    require(size > 0, "the agent closed early");
    std::span<const std::byte> input(buffer.data(), static_cast<std::size_t>(size));
    for (;;) {
      const auto event = decoder.next(input);
      require(!std::holds_alternative<channel::DecodeError>(event), "a bad reply");
      if (std::holds_alternative<channel::Decoder::NeedMore>(event)) break;
      if (std::holds_alternative<channel::Decoder::Done>(event)) {
        done = true;
        break;
      }
    }
  }
  ::close(fd);
  return decoder.take();
}

double medianMs(std::vector<double>& samples) {
  std::nth_element(samples.begin(),
                   samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2),
                   samples.end());
  return samples[samples.size() / 2];
}

struct Way {
  const char* name;
  std::function<void()> once;
  std::vector<double> samples = {};
};

void runVia(tests::ConformanceClient& client) {
  std::string output;
  std::string errors;
  const auto outcome = client.exec(command(), std::nullopt, output, errors, std::nullopt);
  const auto* finished = std::get_if<parser::Finished>(&outcome);
  require(finished != nullptr && finished->rc == 0 && finished->deliveries == 1, "exec failed");
}

std::string memoryOf(std::uint32_t uid, const char* key) {
  const auto processes = vm::processesOf(uid);
  for (const auto& process : processes)
    if (process.name == "cordon-parser") return vm::statusLine(process.pid, key);
  throw std::runtime_error("no parser");
}

int run(unsigned iterations) {
  vm::BootedRange range;
  const std::string atRest = memoryOf(range.parserUid(), "VmRSS");

  const tests::TemporaryDirectory directory;
  const std::string agentSocket = directory / "agent";
  require(::chown(std::string(directory / ".").c_str(), range.uid(0), range.uid(0)) == 0, "chown");
  const tests::GuestProcess agent(CORDON_GUEST_BINARY, agentSocket, range.uid(0));
  // In the view that the parser already has: a guest beside the real one.
  const auto folder = std::filesystem::path(range.guestSocket(0)).parent_path().parent_path() /
                      std::to_string(range.cid(0) + 1);
  std::filesystem::create_directory(folder);
  require(::chmod(folder.c_str(), 0711) == 0, "chmod");
  {
    const std::uint32_t uid = range.uid(0);
    // The agent serves its own uid: the guest's, as whom the relay dials.
    const tests::HybridRelay relay(
        {.hybrid = folder / "vsock.sock", .agent = agentSocket, .uid = uid});
    tests::RpcClient onHost(range.io(), range.parserSocket(), {range.cid(0) + 1, uid});
    tests::RpcClient guest(range.io(), range.parserSocket(), {range.cid(0), uid});

    std::vector<Way> ways;
    ways.push_back({"bare", [&]() {
                      parser::KernelIdSource ids;
                      const channel::Message request{ids.next(), command()};
                      const auto reply = exchange(agentSocket, request);
                      require(std::get<channel::ExecResult>(reply.body).rc == 0, "exec failed");
                      exchange(agentSocket, {ids.next(), channel::Ack{request.id}});
                    }});
    ways.push_back({"parser", [&]() { runVia(onHost); }});
    ways.push_back({"guest", [&]() { runVia(guest); }});
    for (unsigned i = 0; i < iterations; ++i)
      for (Way& way : ways) {
        const auto start = Clock::now();
        way.once();
        way.samples.push_back(
            std::chrono::duration<double, std::milli>(Clock::now() - start).count());
      }
    const double bare = medianMs(ways.front().samples);
    for (Way& way : ways) {
      const double median = medianMs(way.samples);
      std::printf("exec %-8s %8.2f ms  %6.1f x bare\n", way.name, median, median / bare);
    }
    std::printf("parser VmRSS at rest          %s\n", atRest.c_str());

    // 64 MiB through the parser, both ways.
    std::string output;
    std::string errors;
    guest.exec({.cmd = {"dd", "if=/dev/zero", "of=/tmp/bench", "bs=1048576", "count=64"}},
               std::nullopt, output, errors);
    std::string content;
    const auto start = Clock::now();
    const auto read = guest.readFile({.path = "/tmp/bench", .maxBytes = 64 << 20}, content);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    require(std::holds_alternative<parser::Content>(read) && content.size() == 64u << 20, "read");
    std::printf("read of 64 MiB from the guest %.1f MiB/s\n", 64 / seconds);
    std::printf("parser VmHWM after it         %s\n", memoryOf(range.parserUid(), "VmHWM").c_str());
  }
  std::filesystem::remove(folder);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace cordon

int main(int argc, char** argv) {
  const long iterations = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 100;
  if (iterations < 1 || iterations > 100000 || ::geteuid() != 0) {
    std::fprintf(stderr, "usage (as root): %s [ITERATIONS 1..100000]\n", argv[0]);
    return 2;
  }
  try {
    return cordon::run(static_cast<unsigned>(iterations));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cordon_exec_bench: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
