#include "policy/testing/shipped.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace cordon::policy::testing {

std::vector<Shipped> shippedPolicies() {
  const std::filesystem::path folder = CORDON_SHIPPED_POLICIES;
  compiler::Diagnostics faults;
  std::vector<Shipped> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".expanded") {
      continue;
    }
    Shipped shipped;
    shipped.name = entry.path().stem().string();
    shipped.expanded = compiler::readText(entry.path(), faults);
    shipped.policy = compiler::compileExpanded(shipped.expanded, entry.path().string(), faults);
    for (const auto& stage : shipped.policy.stages) {
      const auto stem = shipped.name + (stage.name == "boot" ? ".boot" : "");
      shipped.filters.push_back(
          compiler::programFrom(compiler::readText(folder / (stem + ".bpf"), faults)));
    }
    all.push_back(std::move(shipped));
  }
  if (!faults.empty()) {
    throw std::runtime_error(describe(faults.front()));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

std::string sourceRoot() {
  return CORDON_SOURCE_ROOT;
}

}  // namespace cordon::policy::testing
