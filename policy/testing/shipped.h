#pragma once

#include <string>
#include <vector>

#include "policy/compiler/compile.h"
#include "policy/compiler/filter.h"

// The policies as they are shipped: compiled without the sanitizers' fragment, whatever this build
// embeds.
namespace cordon::policy::testing {

struct Shipped {
  std::string name;
  std::string expanded;
  compiler::CompiledPolicy policy;         // as its expanded text says
  std::vector<compiler::Program> filters;  // of its stages, as its .bpf files say

  const compiler::Meaning& runMeaning() const { return policy.stages.back().meaning; }
  const compiler::Program& runFilter() const { return filters.back(); }
};

// Every policy of policy/seccomp, in the order of their names. Throws if an artefact cannot be
// read.
std::vector<Shipped> shippedPolicies();

// The root of the source tree.
std::string sourceRoot();

}  // namespace cordon::policy::testing
