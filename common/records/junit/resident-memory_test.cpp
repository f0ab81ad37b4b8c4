// The same reports, each in a process of its own: what counts is what is resident, the program's
// own pages included.
#include <array>
#include <cstdio>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>

#include "common/records/junit/testing/fixtures.h"
#include "common/records/junit/testing/hostile.h"

namespace cordon::records::testing {

void PrintTo(const HostileReport& report, std::ostream* out) {
  *out << report.name;
}

namespace {

using nlohmann::json;

constexpr std::size_t MOST_KIB = 64 << 10;

json readInChild(const std::string& name) {
  const std::string command = std::string(CORDON_JUNIT_RESIDENT) + " " + name;
  const std::unique_ptr<FILE, int (*)(FILE*)> child(popen(command.c_str(), "r"), pclose);
  if (!child) throw std::runtime_error("cannot start " + command);
  std::string said;
  std::array<char, 4096> block{};
  while (const std::size_t got = fread(block.data(), 1, block.size(), child.get())) {
    said.append(block.data(), got);
  }
  return json::parse(said);  // throws where the child was lost
}

class ResidentMemory : public ::testing::TestWithParam<HostileReport> {};

TEST_P(ResidentMemory, StaysBelowItsBound) {
  const json told = readInChild(GetParam().name);
  EXPECT_EQ(told["status"], nameOf(GetParam().status));
  EXPECT_EQ(told["reason"], nameOf(GetParam().reason));
  EXPECT_EQ(told["totals"], jsonOf(GetParam().totals));
  EXPECT_EQ(told["truncated"], GetParam().truncated);
  EXPECT_LT(told["resident_kib"], MOST_KIB);
  std::printf("%s: %s\n", GetParam().name.c_str(), told["resident_kib"].dump().c_str());
}

INSTANTIATE_TEST_SUITE_P(All, ResidentMemory, ::testing::ValuesIn(hostileReports()),
                         [](const auto& named) { return named.param.name; });

}  // namespace
}  // namespace cordon::records::testing
