// Reads one of the hostile reports, named by its argument, and says what came of it and how much
// memory was resident at most: a process of its own, as small as one that reads reports can be.
#include <cstdio>
#include <exception>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>

#include "common/records/junit/testing/fixtures.h"
#include "common/records/junit/testing/hostile.h"

namespace cordon::records::testing {
namespace {

std::size_t mostResidentKib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6));
  }
  throw std::runtime_error("no VmHWM");
}

int run(std::string_view name) {
  for (const HostileReport& hostile : hostileReports()) {
    if (hostile.name != name) continue;
    JunitReader reader;
    hostile.write([&](std::string_view bytes) { reader.feed(std::as_bytes(std::span(bytes))); });
    JunitReport report = reader.finish();
    const std::size_t resident = mostResidentKib();
    report.cases.clear();  // not compared, and long
    nlohmann::json said = jsonOf(report);
    said["resident_kib"] = resident;
    std::puts(said.dump().c_str());
    return 0;
  }
  return 1;
}

}  // namespace
}  // namespace cordon::records::testing

int main(int argc, char** argv) {
  try {
    return argc == 2 ? cordon::records::testing::run(argv[1]) : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
