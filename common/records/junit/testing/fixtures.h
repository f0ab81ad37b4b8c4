// The files of tests/data/junit with what `cordon read junit --json` says of them. Naming:
// tests/data/README.md.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/records/junit/reader.h"

namespace cordon::records::testing {

struct JunitFixture {
  std::string name;
  std::string bytes;
  nlohmann::json expected;
};

void PrintTo(const JunitFixture& fixture, std::ostream* out);

// In the order of their names. Throws where one has no expectation, or the other way round.
std::vector<JunitFixture> junitFixtures();

// As `cordon read junit --json` has it.
nlohmann::json jsonOf(const JunitReport& report);
nlohmann::json jsonOf(const JunitTotals& totals);

JunitReport readWhole(std::string_view text, const JunitLimits& limits = {});

}  // namespace cordon::records::testing
