// What the shipped filters say, against what their expanded texts say: in user space for every
// number, and in the kernel for every rule.
#include <bit>
#include <sstream>

#include <gtest/gtest.h>

#include "policy/compiler/evaluator.h"
#include "policy/compiler/names.h"
#include "policy/testing/child.h"
#include "policy/testing/shipped.h"

namespace cordon::policy::testing {
namespace {

using compiler::Action;
using compiler::Arguments;
using compiler::Cube;

constexpr std::uint64_t GARBAGE = 0xdeadbeef00000000;
constexpr int URETPROBE = 335;
constexpr int UPROBE = 336;
// No process has it: what is signalled by a call that is let through does not exist.
constexpr std::uint64_t NO_PROCESS = 0x7ffffff0;

std::string hex(const Arguments& arguments) {
  std::ostringstream text;
  text << std::hex;
  for (const auto argument : arguments) {
    text << " 0x" << argument;
  }
  return text.str();
}

// Arguments that a cube admits, with everything that it leaves open set to what the kernel refuses
// at once: the call is let through, and then does nothing.
Arguments harmless(const compiler::CallRule& rule, const Cube& cube) {
  Arguments arguments{};
  arguments.fill(~std::uint64_t{0});
  for (const auto& argument : compiler::argumentsOf(rule.call)) {
    if (argument.name == "pid" || argument.name == "group" || argument.name == "thread" ||
        argument.name == "id") {
      arguments[argument.index] = NO_PROCESS;
    }
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (cube.mask[i] != 0) {
      arguments[i] = cube.value[i];
    }
  }
  return arguments;
}

// The upper halves of the 32-bit arguments that the cube tests, filled with what a caller may leave
// there.
Arguments withGarbage(const Cube& cube, Arguments arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (cube.mask[i] != 0 && (cube.mask[i] >> 32) == 0) {
      arguments[i] |= GARBAGE;
    }
  }
  return arguments;
}

class PolicyLive : public ::testing::TestWithParam<std::size_t> {
 protected:
  static const std::vector<Shipped>& all() {
    static const auto POLICIES = shippedPolicies();
    return POLICIES;
  }
  const Shipped& shipped() const { return all().at(GetParam()); }
};

void expectSurvival(const compiler::Program& filter, const compiler::CallRule& rule,
                    const Arguments& arguments) {
  const int status = runCall(filter, rule.number, arguments);
  EXPECT_FALSE(diedOfPolicy(status))
      << rule.line << " with" << hex(arguments) << ": " << describeStatus(status);
}

void expectDeath(const compiler::Program& filter, const compiler::CallRule& rule,
                 const Arguments& arguments) {
  const int status = runCall(filter, rule.number, arguments);
  EXPECT_TRUE(diedOfPolicy(status))
      << rule.line << " with" << hex(arguments) << ": " << describeStatus(status);
}

// Each bit that the rule tests, turned round, where no other rule admits the result.
void expectDeathOfNeighbours(const compiler::Program& filter, const compiler::Meaning& meaning,
                             const compiler::CallRule& rule, const Cube& cube,
                             const Arguments& admitted) {
  for (std::size_t i = 0; i < cube.mask.size(); ++i) {
    for (auto open = cube.mask[i]; open != 0; open &= open - 1) {
      auto arguments = admitted;
      arguments[i] ^= std::uint64_t{1} << std::countr_zero(open);
      if (compiler::decide(meaning, rule.number, arguments).action != Action::KILL_PROCESS) {
        continue;
      }
      expectDeath(filter, rule, arguments);
      expectDeath(filter, rule, withGarbage(cube, arguments));
    }
  }
}

TEST_P(PolicyLive, EveryRuleHoldsExactly) {
  for (std::size_t i = 0; i < shipped().policy.stages.size(); ++i) {
    const auto& stage = shipped().policy.stages[i];
    for (const auto& rule : stage.rules) {
      if (rule.error) {
        expectSurvival(shipped().filters[i], rule, {});
        continue;
      }
      for (const auto& cube : rule.cubes) {
        const auto admitted = harmless(rule, cube);
        expectSurvival(shipped().filters[i], rule, admitted);
        expectSurvival(shipped().filters[i], rule, withGarbage(cube, admitted));
        expectDeathOfNeighbours(shipped().filters[i], stage.meaning, rule, cube, admitted);
      }
    }
  }
}

TEST_P(PolicyLive, TheFilterSaysWhatTheTextSays) {
  for (std::size_t i = 0; i < shipped().filters.size(); ++i) {
    const auto difference =
        compiler::findDifference(shipped().filters[i], shipped().policy.stages[i].meaning);
    EXPECT_FALSE(difference) << shipped().name << ": " << compiler::describeDifference(*difference);
  }
}

TEST_P(PolicyLive, TheTextIsTheOneThatWasReviewed) {
  compiler::Diagnostics faults;
  const auto path = sourceRoot() + "/policy/expected/" + shipped().name + ".expanded";
  EXPECT_EQ(compiler::readText(path, faults), shipped().expanded)
      << "if the change is meant: append the row of 'cordon-policyc change' to policy/CHANGES.md "
         "and copy "
         "policy/compiled/plain/"
      << shipped().name << ".expanded to policy/expected/";
  EXPECT_TRUE(faults.empty());
}

TEST_P(PolicyLive, NothingThatIsNotListedSurvives) {
  // Every number without a rule, in the kernel: the evaluator's word is not taken for the default.
  const auto& meaning = shipped().runMeaning();
  for (int number = 0; number < 460; ++number) {
    // Since Linux 6.14 these two pass before any filter; they answer only to the kernel's own
    // trampolines.
    if (number == URETPROBE || number == UPROBE) {
      continue;
    }
    if (meaning.count(number) != 0) {
      continue;
    }
    const int status = runCall(shipped().runFilter(), number, {});
    EXPECT_TRUE(diedOfPolicy(status)) << compiler::callName(number).value_or("?") << ' ' << number
                                      << ": " << describeStatus(status);
  }
}

std::vector<std::size_t> indices() {
  std::vector<std::size_t> list(shippedPolicies().size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i] = i;
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(Shipped, PolicyLive, ::testing::ValuesIn(indices()),
                         [](const auto& instance) {
                           auto name = shippedPolicies().at(instance.param).name;
                           for (auto& c : name) {
                             if (c == '-') {
                               c = '_';
                             }
                           }
                           return name;
                         });

}  // namespace
}  // namespace cordon::policy::testing
