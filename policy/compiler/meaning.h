#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

// What a policy means, apart from how a filter computes it: for a call's number and its six
// arguments, one decision. Inclusion between policies and the comparison with compiled filters are
// both decided on this form.
namespace cordon::policy::compiler {

using Arguments = std::array<std::uint64_t, 6>;

// A set of argument vectors: those that agree with `value` in every bit of `mask`. Every test of
// the language is a union of such sets, and so is every condition. Invariant: value & ~mask == 0.
struct Cube {
  Arguments mask{};
  Arguments value{};

  bool contains(const Arguments& arguments) const;
  bool operator==(const Cube&) const = default;
};

enum class Action { KILL_PROCESS, ALLOW, ERRNO };

struct Decision {
  Action action = Action::KILL_PROCESS;
  int error = 0;  // ERRNO only

  bool operator==(const Decision&) const = default;
};

// One call in one stage: answered with an error whatever its arguments, or allowed for a union of
// argument sets.
struct CallMeaning {
  std::optional<int> error;
  std::vector<Cube> allowed;
};

// By call number. Numbers that are absent kill the process.
using Meaning = std::map<int, CallMeaning>;

Decision decide(const Meaning& meaning, int number, const Arguments& arguments);

struct Excess {
  int number = 0;
  Arguments arguments{};  // an example: what the inner policy permits and the outer does not
};

// Nothing if every call that `inner` permits or answers is permitted by `outer`, or answered by it
// with the same error: then the inner policy means under the outer one what it means alone. Exact,
// not an approximation.
std::optional<Excess> findExcess(const Meaning& outer, const Meaning& inner);

}  // namespace cordon::policy::compiler
