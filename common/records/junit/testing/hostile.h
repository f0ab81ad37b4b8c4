// Reports too large or too wild to keep as files: written when they are needed, piece by piece.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/records/junit/junit.h"

namespace cordon::records::testing {

using Feed = std::function<void(std::string_view)>;

struct HostileReport {
  std::string name;
  std::function<void(const Feed&)> write;
  Status status;
  Reason reason = Reason::NONE;
  JunitTotals totals;
  bool truncated = false;
  bool heavy = false;  // too slow for a sanitized build
};

std::vector<HostileReport> hostileReports();

}  // namespace cordon::records::testing
