// The JUnit reader against the floor under it: expat with empty handlers over the same report of
// 50 MB, in the same run. The last line is the ratio. Before that, what is resident at most after
// reports of 1, 50 and 500 MB, made while they are read.
#include <expat.h>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "common/records/junit/reader.h"

namespace cordon::records {
namespace {

constexpr std::size_t MB = 1'000'000;
// What a transport hands over at once.
constexpr std::size_t RECEIVE_SIZE = 64u << 10;

// Cases as pytest and GoogleTest write them; one in ten fails and says so in a page of text, one in
// seven printed something.
std::string caseOf(std::size_t i) {
  const std::string number = std::to_string(i);
  std::string text = "    <testcase classname=\"tests.vault.test_frame_" + number.substr(0, 2) +
                     "\" name=\"test_decodes[" + number +
                     "]\" file=\"tests/vault/test_frame.py\" line=\"" + number + "\" time=\"0.0" +
                     number + "\"";
  if (i % 10 != 0 && i % 7 != 0) return text + " />\n";
  text += ">\n";
  if (i % 10 == 0) {
    text += "      <failure message=\"AssertionError: assert 1 == 2\">";
    for (int line = 0; line < 12; ++line) {
      text += "tests/vault/test_frame.py:41: in test_decodes\n    assert left &lt; right\n";
    }
    text += "</failure>\n";
  }
  if (i % 7 == 0) text += "      <system-out><![CDATA[opened, read, closed\n]]></system-out>\n";
  return text + "    </testcase>\n";
}

// Of about `size` bytes; after `cases` the same cases come again.
template <class Feed>
void writeReport(std::size_t size, std::size_t cases, Feed&& feed) {
  std::string block = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<testsuites>\n";
  std::size_t written = 0;
  std::size_t i = 0;
  while (written + block.size() < size) {
    block += "  <testsuite name=\"suite" + std::to_string(i / 100) + "\" time=\"1.5\">\n";
    for (int n = 0; n < 100; ++n) block += caseOf(i++);
    if (i == cases) i = 0;
    block += "  </testsuite>\n";
    if (block.size() < RECEIVE_SIZE) continue;
    feed(block);
    written += block.size();
    block.clear();
  }
  feed(block + "</testsuites>\n");
}

const std::string& report() {
  static const std::string BYTES = [] {
    std::string bytes;
    writeReport(50 * MB, 1'000'000, [&](std::string_view block) { bytes += block; });
    return bytes;
  }();
  return BYTES;
}

void countBytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(report().size()));
}

template <class Feed>
void inPieces(std::string_view text, Feed&& feed) {
  for (; !text.empty(); text.remove_prefix(std::min(RECEIVE_SIZE, text.size()))) {
    feed(text.substr(0, RECEIVE_SIZE));
  }
}

void bareExpat(benchmark::State& state) {
  for (auto _ : state) {
    XML_Parser parser = XML_ParserCreateNS("UTF-8", '\x01');
    XML_SetElementHandler(
        parser, [](void*, const char*, const char**) {}, [](void*, const char*) {});
    XML_SetCharacterDataHandler(parser, [](void*, const char*, int) {});
    bool good = true;
    inPieces(report(), [&](std::string_view piece) {
      good &= XML_Parse(parser, piece.data(), static_cast<int>(piece.size()), 0) == XML_STATUS_OK;
    });
    good &= XML_Parse(parser, nullptr, 0, 1) == XML_STATUS_OK;
    XML_ParserFree(parser);
    if (!good) state.SkipWithError("expat does not take the report");
  }
  countBytes(state);
}

void ourReader(benchmark::State& state) {
  for (auto _ : state) {
    JunitReader reader;
    inPieces(report(),
             [&](std::string_view piece) { reader.feed(std::as_bytes(std::span(piece))); });
    if (reader.finish().status != Status::OK) state.SkipWithError("the report is not read");
  }
  countBytes(state);
}

class Rates : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const auto rate = run.counters.find("bytes_per_second");
      if (rate == run.counters.end() || run.run_type == Run::RT_Aggregate) continue;
      auto& best = rates[run.run_name.function_name];
      best = std::max<double>(best, rate->second);
    }
    ConsoleReporter::ReportRuns(runs);
  }
  std::map<std::string, double> rates;
};

std::size_t mostResidentKib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6));
  }
  return 0;
}

// From small to large, before anything else is in memory: the most so far is that of the largest.
// A table of the cases' keys grows with their number, up to 19 MiB; so the last one is of as many
// cases as there may be.
bool printMemory() {
  struct Run {
    std::size_t size;
    std::size_t cases;
  };
  for (const Run& run :
       {Run{1 * MB, 4000}, Run{50 * MB, 4000}, Run{500 * MB, 4000}, Run{500 * MB, 1'000'000}}) {
    JunitReader reader;
    writeReport(run.size, run.cases,
                [&](std::string_view block) { reader.feed(std::as_bytes(std::span(block))); });
    const JunitReport made = reader.finish();
    std::printf("%zu MB: VmHWM %zu KiB, %llu cases\n", run.size / MB, mostResidentKib(),
                static_cast<unsigned long long>(made.totals.cases));
    if (made.status != Status::OK) return false;
  }
  return true;
}

BENCHMARK(bareExpat)->Unit(benchmark::kMillisecond);
BENCHMARK(ourReader)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cordon::records

int main(int argc, char** argv) {
  using namespace cordon::records;
  if (!printMemory()) return EXIT_FAILURE;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return EXIT_FAILURE;
  Rates rates;
  benchmark::RunSpecifiedBenchmarks(&rates);
  if (rates.rates.count("bareExpat") == 0 || rates.rates.count("ourReader") == 0) {
    return EXIT_FAILURE;
  }
  std::printf("reader / bare expat: %.2f (best of each, CPU time)\n",
              rates.rates["ourReader"] / rates.rates["bareExpat"]);
}
