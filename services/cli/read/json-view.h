// The machine's view of a report: one JSON object on one line, the same keys in the same order
// whatever happened.
#pragma once

#include <string>
#include <string_view>

#include "common/records/coverage/coverage.h"
#include "common/records/junit/junit.h"
#include "common/records/verdicts/verdicts.h"

namespace cordon::cli {

// ASCII alone: what a file chose stands in it as \uXXXX escapes, so that no control, bidirectional
// or line-separating character reaches whoever prints it. Ends with a line feed.
std::string toJson(const records::JunitReport& report);
std::string toJson(const records::VerdictsReport& report);
std::string toJson(const records::CoverageReport& report);

std::string_view nameOf(records::CaseOutcome outcome);
std::string_view nameOf(records::VerdictOutcome outcome);
std::string_view nameOf(records::Coverage answer);

}  // namespace cordon::cli
