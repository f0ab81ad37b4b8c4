#pragma once

#include <string>

#include "common/records/coverage/coverage.h"

namespace cordon::records::testing {

// As `cordon read coverage --json` writes it.
std::string jsonOf(const CoverageReport& report);

}  // namespace cordon::records::testing
