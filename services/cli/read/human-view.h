// A person's view of a report: short, the worst first, in words.
#pragma once

#include <string>

#include "common/records/coverage/coverage.h"
#include "common/records/junit/junit.h"
#include "common/records/verdicts/verdicts.h"

namespace cordon::cli {

struct ViewStyle {
  bool colour = false;
};

// path: as the caller named it. What file and path chose is made visible (common/log/visible.h).
std::string toText(const std::string& path, const records::JunitReport& report, ViewStyle style);
std::string toText(const std::string& path, const records::VerdictsReport& report, ViewStyle style);
std::string toText(const std::string& path, const records::CoverageReport& report, ViewStyle style);

}  // namespace cordon::cli
