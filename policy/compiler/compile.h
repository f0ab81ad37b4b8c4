#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "policy/compiler/grants.h"
#include "policy/compiler/language.h"
#include "policy/compiler/meaning.h"

namespace cordon::policy::compiler {

// One line of an expanded policy.
struct CallRule {
  int number = 0;
  std::string call;
  std::string line;  // canonical: "allow CALL[ if TEST[ and TEST]]" or "errno NAME CALL"
  std::vector<Cube>
      cubes;  // empty for an errno rule; one without fixed bits for an unconditional one
  std::optional<int> error;
  bool isRare = false;
  std::string testName;  // of a rare rule
  std::string fragment;  // "fragments/NAME", or empty
  Place place;
};

struct CompiledStage {
  std::string name;             // "boot" or "run"
  std::vector<CallRule> rules;  // sorted by line, each line once
  Meaning meaning;
};

struct CompiledPolicy {
  std::string name;
  std::string with;                   // "fragments/sanitizers" if that was added, else empty
  std::vector<CompiledStage> stages;  // boot first if there is one
};

// A tree of policies: root/seccomp/NAME.policy, root/seccomp/fragments/NAME.policy, root/GRANTS.md.
struct Tree {
  std::filesystem::path root;
  std::vector<Grant> grants;
};

// Reads, expands and checks one policy. `with` names a fragment to add to every stage; it may
// repeat what the policy allows already. Complete only if nothing was added to `faults`.
CompiledPolicy compilePolicy(const Tree& tree, const std::string& name, const std::string& with,
                             Diagnostics& faults);

// The same from the text of an .expanded file, which is trusted to have passed the checks for
// reasons and grants.
CompiledPolicy compileExpanded(std::string_view text, const std::string& file, Diagnostics& faults);

// Reads a whole file; a fault and an empty text if it cannot.
std::string readText(const std::filesystem::path& path, Diagnostics& faults);

}  // namespace cordon::policy::compiler
