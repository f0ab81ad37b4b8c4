// Each hostile report has exactly one verdict, costs no more memory than it may, and does so
// whatever it is.
#include "common/records/junit/testing/hostile.h"

#include <ostream>
#include <span>

#include <gmock/gmock.h>

#include "common/records/junit/testing/fixtures.h"

namespace cordon::records::testing {

void PrintTo(const HostileReport& report, std::ostream* out) {
  *out << report.name;
}

namespace {

class Hostile : public ::testing::TestWithParam<HostileReport> {};

TEST_P(Hostile, HasItsVerdictWithinTheBudget) {
  JunitReader reader;
  GetParam().write([&](std::string_view bytes) { reader.feed(std::as_bytes(std::span(bytes))); });
  const JunitReport report = reader.finish();
  EXPECT_EQ(nameOf(report.status), nameOf(GetParam().status));
  EXPECT_EQ(nameOf(report.reason), nameOf(GetParam().reason));
  EXPECT_EQ(jsonOf(report.totals), jsonOf(GetParam().totals));
  EXPECT_EQ(report.truncated, GetParam().truncated);
  EXPECT_LE(reader.peakMemory(), JunitLimits{}.memory);
}

std::vector<HostileReport> lightReports() {
  std::vector<HostileReport> light = hostileReports();
  std::erase_if(light, [](const HostileReport& report) { return report.heavy; });
  return light;
}

INSTANTIATE_TEST_SUITE_P(Light, Hostile, ::testing::ValuesIn(lightReports()),
                         [](const auto& named) { return named.param.name; });

TEST(HostileReports, AreEnough) {
  EXPECT_GE(hostileReports().size(), 25u);
}

}  // namespace
}  // namespace cordon::records::testing
