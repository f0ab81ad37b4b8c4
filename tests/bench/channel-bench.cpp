// Frames against the floor under them: SHA-256 over the same bytes, in the same run. Bulk is 16 MiB
// in frames of 32 KiB. The last lines are the ratios; 1.00 would mean that framing costs nothing.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "common/channel/decoder.h"
#include "common/channel/encoder.h"
#include "common/channel/sha256.h"

namespace cordon::channel {
namespace {

constexpr std::size_t BULK_SIZE = 16u << 20;
// What a transport hands over at once.
constexpr std::size_t RECEIVE_SIZE = 64u << 10;

std::span<const std::byte> bytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

const std::string& bulk() {
  static const std::string BYTES = [] {
    std::string bytes(BULK_SIZE, '\0');
    std::uint32_t random = 2463534242u;
    for (char& byte : bytes) {
      random ^= random << 13;
      random ^= random >> 17;
      random ^= random << 5;
      byte = static_cast<char>(random);
    }
    return bytes;
  }();
  return BYTES;
}

Message messageOf(std::size_t size) {
  const auto declared = static_cast<std::int64_t>(size);
  return {.id = {}, .body = FileData{.size = declared, .dataSize = declared}};
}

const std::string& stream() {
  static const std::string BYTES =
      std::get<std::string>(encodeMessage(messageOf(BULK_SIZE), bytesOf(bulk())));
  return BYTES;
}

void countBytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(BULK_SIZE));
}

void sha256(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(sha256Of(std::string_view(bulk())));
  countBytes(state);
}
BENCHMARK(sha256);

void decode(benchmark::State& state) {
  for (auto _ : state) {
    Decoder decoder(BULK_SIZE);
    auto rest = bytesOf(stream());
    bool done = false;
    while (!done && !rest.empty()) {
      auto input = rest.first(std::min(rest.size(), RECEIVE_SIZE));
      rest = rest.subspan(input.size());
      for (;;) {
        const auto event = decoder.next(input);
        if (std::holds_alternative<Decoder::NeedMore>(event)) break;
        if (std::holds_alternative<DecodeError>(event)) std::abort();
        if ((done = std::holds_alternative<Decoder::Done>(event))) break;
      }
    }
    if (!done) std::abort();
  }
  countBytes(state);
}
BENCHMARK(decode);

// As a sender does it: the headers come from the encoder, the payload is sent from where it lies.
void encode(benchmark::State& state) {
  for (auto _ : state) {
    auto control = encodeControl(messageOf(BULK_SIZE));
    benchmark::DoNotOptimize(control);
    BulkEncoder encoder;
    for (auto rest = bytesOf(bulk()); !rest.empty();) {
      const auto part = rest.first(std::min(rest.size(), MAX_FRAME_PAYLOAD));
      rest = rest.subspan(part.size());
      benchmark::DoNotOptimize(encoder.frame(part));
    }
    benchmark::DoNotOptimize(encoder.end());
  }
  countBytes(state);
}
BENCHMARK(encode);

Message execRequest() {
  Exec exec{.cmd = {"/bin/sh", "-c", "uname -a; id"}, .cwd = "/home/agent", .user = "agent"};
  exec.env = {{"LANG", "C.UTF-8"}, {"TERM", "dumb"}};
  exec.budget.commandMs = 30000;
  return {.id = {}, .body = exec};
}

void decodeExec(benchmark::State& state) {
  const std::string frame = std::get<std::string>(encodeControl(execRequest()));
  for (auto _ : state) {
    auto message = decodeControl(bytesOf(frame).subspan(FRAME_HEADER_SIZE));
    benchmark::DoNotOptimize(message);
  }
}
BENCHMARK(decodeExec);

void encodeExec(benchmark::State& state) {
  const Message message = execRequest();
  for (auto _ : state) benchmark::DoNotOptimize(encodeControl(message));
}
BENCHMARK(encodeExec);

// The usual table, and the median rates for the ratios.
class Rates : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      const auto rate = run.counters.find("bytes_per_second");
      if (run.run_type == Run::RT_Iteration && rate != run.counters.end()) {
        rates[run.run_name.function_name].push_back(rate->second);
      }
    }
  }
  double median(const std::string& name) {
    auto& all = rates[name];
    if (all.empty()) return 0;
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }

 private:
  std::map<std::string, std::vector<double>> rates;
};

}  // namespace
}  // namespace cordon::channel

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  cordon::channel::Rates rates;
  benchmark::RunSpecifiedBenchmarks(&rates);
  const double floor = rates.median("sha256");
  if (floor <= 0) return 0;
  constexpr double GIGA = 1e9;
  for (const char* name : {"decode", "encode"}) {
    const double rate = rates.median(name);
    if (rate > 0) {
      std::printf("%s: %.2f GB/s, sha256: %.2f GB/s, ratio %.2f\n", name, rate / GIGA, floor / GIGA,
                  rate / floor);
    }
  }
  return 0;
}
