#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/compiler/diagnostic.h"

// The two tables that people keep beside the policies.
//
// GRANTS.md   | id | policy | expanded line | what an attacker gains | because | bounded by | owner
// | test | CHANGES.md  | n | policy | - lines | + lines | reason | test | expanded sha256[:12] |
//
// A cell may be in backticks and may have several of them, joined by <br>; '|' within a cell is
// written '\|'.
namespace cordon::policy::compiler {

struct Grant {
  std::string id;
  std::string
      policy;  // a policy's name, or "fragments/sanitizers" for what only sanitizer builds add
  std::string line;
  std::string owner;
  std::string test;
  Place place;
};

struct Change {
  unsigned number = 0;
  std::string policy;
  std::vector<std::string> removed;  // lines of the run stage; of boot with "boot: " before them
  std::vector<std::string> added;
  std::string test;
  std::string digest;  // first 12 hex digits of the .expanded file's SHA-256 after this change
  Place place;
};

std::vector<Grant> parseGrants(std::string_view text, const std::string& file, Diagnostics& faults);
std::vector<Change> parseChanges(std::string_view text, const std::string& file,
                                 Diagnostics& faults);

// What the condition of a rule leaves open; decides whether a call that is harmless in some uses is
// one of them.
struct Reach {
  bool canExecute = true;     // a protection with PROT_EXEC passes
  bool isThreadOnly = false;  // only flags with CLONE_THREAD pass
  bool fixesSignal = false;   // the signal is one that the rule names
};

// Why a line needs a row in GRANTS.md: what the call can do beyond computing and talking over
// descriptors that the process already holds. Empty if it needs none.
std::string_view dangerOf(std::string_view call, const Reach& reach);

}  // namespace cordon::policy::compiler
