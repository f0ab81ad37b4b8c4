#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policy/compiler/language.h"
#include "policy/compiler/meaning.h"
#include "policy/compiler/names.h"

// From names to numbers: what a rule's condition means for one call.
namespace cordon::policy::compiler {

struct Condition {
  std::string text;  // canonical, with " if " before it; empty if unconditional. Tests in argument
                     // order, lists sorted
  std::vector<Cube> cubes;  // the union of these
};

std::optional<Condition> resolveCondition(const std::string& call, const std::vector<Test>& tests,
                                          Diagnostics& faults);

// ENOSYS or EACCES, the two answers that libraries know how to live with.
std::optional<int> resolveErrno(const Word& name, Diagnostics& faults);

// "CALL(NAME=0x…, …)" with the arguments that are named; for messages.
std::string describeExcess(const Excess& excess);

}  // namespace cordon::policy::compiler
