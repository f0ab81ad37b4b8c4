#include "policy/compiler/compile.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <sched.h>
#include <set>
#include <sys/mman.h>

#include "policy/compiler/resolve.h"

namespace cordon::policy::compiler {
namespace {

constexpr std::string_view SANITIZERS = "fragments/sanitizers";

struct Source {
  const Rule& rule;
  std::string fragment;
};

Reach reachOf(const std::string& call, const std::vector<Cube>& cubes) {
  Reach reach;
  for (const auto& argument : argumentsOf(call)) {
    const auto i = argument.index;
    auto all = [&](auto property) { return std::all_of(cubes.begin(), cubes.end(), property); };
    if (argument.name == "prot") {
      reach.canExecute = !all([&](const Cube& cube) {
        return (cube.mask[i] & PROT_EXEC) != 0 && (cube.value[i] & PROT_EXEC) == 0;
      });
    } else if (argument.name == "flags") {
      reach.isThreadOnly =
          all([&](const Cube& cube) { return (cube.value[i] & CLONE_THREAD) != 0; });
    } else if (argument.name == "sig") {
      constexpr std::uint64_t SIGNAL_BITS = 0x7f;
      reach.fixesSignal =
          all([&](const Cube& cube) { return (cube.mask[i] & SIGNAL_BITS) == SIGNAL_BITS; });
    }
  }
  return reach;
}

// Turns the rules of one stage into sorted lines, and refuses pairs of rules that cannot both be
// meant.
class StageBuilder {
 public:
  StageBuilder(std::string name, Diagnostics& sink) : faults(sink) { stage.name = std::move(name); }

  // `mayRepeat`: what is allowed already is left out instead of refused.
  void add(const Source& source, bool mayRepeat) {
    const auto& rule = source.rule;
    for (const auto& word : rule.calls) {
      CallRule line;
      line.call = word.text;
      line.place = word.place;
      line.fragment = source.fragment;
      line.isRare = rule.verb == Verb::RARE;
      line.testName = rule.testName.text;
      const auto number = callNumber(word.text);
      if (!number) {
        faults.push_back({Fault::UNKNOWN_CALL, word.place,
                          "'" + word.text + "' is no system call on this architecture",
                          "write the kernel's name of a call, as in man 2 syscalls"});
        continue;
      }
      line.number = *number;
      if (rule.verb == Verb::ERRNO) {
        line.error = resolveErrno(rule.errorName, faults);
        line.line = "errno " + rule.errorName.text + ' ' + word.text;
      } else {
        auto condition = resolveCondition(word.text, rule.tests, faults);
        if (!condition) {
          continue;
        }
        line.cubes = std::move(condition->cubes);
        line.line = "allow " + word.text + condition->text;
      }
      if (!collides(line, mayRepeat)) {
        stage.rules.push_back(std::move(line));
      }
    }
  }

  CompiledStage finish() {
    std::sort(stage.rules.begin(), stage.rules.end(),
              [](const CallRule& a, const CallRule& b) { return a.line < b.line; });
    for (const auto& rule : stage.rules) {
      auto& call = stage.meaning[rule.number];
      call.error = rule.error;
      call.allowed.insert(call.allowed.end(), rule.cubes.begin(), rule.cubes.end());
    }
    return std::move(stage);
  }

 private:
  static std::string describePlace(const Place& place) {
    return place.file + ':' + std::to_string(place.line);
  }

  static bool isUnconditional(const CallRule& rule) {
    return rule.error.has_value() || (rule.cubes.size() == 1 && rule.cubes.front() == Cube{});
  }

  bool collides(const CallRule& rule, bool mayRepeat) {
    for (const auto& other : stage.rules) {
      if (other.number != rule.number) {
        continue;
      }
      if (other.error != rule.error) {
        faults.push_back({Fault::CONTRADICTION, rule.place,
                          "'" + rule.call + "' is answered with an error here or in " +
                              describePlace(other.place) + ", and allowed in the other",
                          "decide for one of them: an errno rule has no condition"});
        return true;
      }
      const bool isSame = other.line == rule.line;
      if (!isSame && !isUnconditional(other) && !isUnconditional(rule)) {
        continue;
      }
      if (mayRepeat) {
        if (isSame || isUnconditional(other)) {
          return true;
        }
        continue;
      }
      if (isSame) {
        faults.push_back(
            {Fault::DUPLICATE_RULE, rule.place,
             "'" + rule.line + "' stands in " + describePlace(other.place) + " already",
             "remove one of the two"});
      } else {
        const auto& hidden = isUnconditional(other) ? rule : other;
        const auto& hides = isUnconditional(other) ? other : rule;
        faults.push_back({Fault::SHADOWED_RULE, hidden.place,
                          "'" + hidden.line + "' says nothing: " + describePlace(hides.place) +
                              " allows every " + hides.call,
                          "remove the condition's rule, or give the other one a condition"});
      }
      return true;
    }
    return false;
  }

  Diagnostics& faults;
  CompiledStage stage;
};

void checkGrants(const Tree& tree, const CompiledPolicy& policy,
                 const std::filesystem::path& source, Diagnostics& faults) {
  std::set<std::string> granted;
  for (const auto& stage : policy.stages) {
    for (const auto& rule : stage.rules) {
      const auto danger =
          rule.error ? std::string_view{} : dangerOf(rule.call, reachOf(rule.call, rule.cubes));
      if (danger.empty()) {
        continue;
      }
      const auto& holder = rule.fragment == SANITIZERS ? rule.fragment : policy.name;
      const auto row = std::find_if(
          tree.grants.begin(), tree.grants.end(),
          [&](const Grant& grant) { return grant.policy == holder && grant.line == rule.line; });
      if (row == tree.grants.end()) {
        faults.push_back(
            {Fault::DANGEROUS_WITHOUT_GRANT, rule.place,
             "'" + rule.line + "' reaches " + std::string(danger) + ", and no row grants it to " +
                 holder,
             "do without it, or add the row to GRANTS.md with an owner, a bound and a test"});
      } else {
        granted.insert(row->id);
      }
    }
  }
  for (const auto& grant : tree.grants) {
    if (grant.policy == policy.name && granted.count(grant.id) == 0) {
      faults.push_back({Fault::STALE_GRANT, grant.place,
                        "row " + grant.id + " grants '" + grant.line + "', which " +
                            source.filename().string() +
                            " does not contain or which needs no grant",
                        "remove the row, or write the line exactly as the .expanded file has it"});
    }
  }
}

void checkStagesNest(const CompiledPolicy& policy, const Place& place, Diagnostics& faults) {
  if (policy.stages.size() != 2) {
    return;
  }
  if (const auto excess = findExcess(policy.stages[0].meaning, policy.stages[1].meaning)) {
    faults.push_back(
        {Fault::NOT_CONTAINED, place,
         "stage run permits " + describeExcess(*excess) + ", which stage boot does not",
         "allow it in boot too: filters only narrow, so run could never do it"});
  }
}

}  // namespace

std::string readText(const std::filesystem::path& path, Diagnostics& faults) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || file.bad()) {
    faults.push_back({Fault::CANNOT_READ,
                      {path.string(), 0, 0},
                      "cannot be read",
                      "check the path and its mode"});
    return {};
  }
  return text;
}

CompiledPolicy compilePolicy(const Tree& tree, const std::string& name, const std::string& with,
                             Diagnostics& faults) {
  const auto folder = tree.root / "seccomp";
  const auto path = folder / (name + ".policy");
  const auto source = readText(path, faults);
  CompiledPolicy compiled{name, with, {}};
  if (!faults.empty()) {
    return compiled;
  }
  const auto policy = parsePolicy(source, path.string(), name, faults);

  struct Part {
    FragmentText text;
    std::string name;
  };
  std::vector<Part> parts;
  std::set<std::string> seen;
  auto load = [&](const std::string& fragment, const Place& place) {
    const auto file = folder / "fragments" / (fragment + ".policy");
    if (fragment.find('/') != std::string::npos || !std::filesystem::is_regular_file(file)) {
      faults.push_back({Fault::UNKNOWN_FRAGMENT, place, "there is no fragment '" + fragment + "'",
                        "use one of " + (folder / "fragments").string()});
      return;
    }
    if (!seen.insert(fragment).second) {
      faults.push_back({Fault::DUPLICATE_RULE, place, "fragment '" + fragment + "' is used twice",
                        "use it once"});
      return;
    }
    parts.push_back({parseFragment(readText(file, faults), file.string(), fragment, faults),
                     "fragments/" + fragment});
  };
  for (const auto& use : policy.uses) {
    load(use.text, use.place);
  }
  if (!with.empty()) {
    load(with.substr(with.find('/') + 1), {path.string(), 0, 0});
  }
  if (!faults.empty()) {
    return compiled;
  }
  for (const auto& stage : policy.stages) {
    StageBuilder builder(stage.name.text, faults);
    for (const auto& rule : stage.rules) {
      builder.add({rule, {}}, false);
    }
    for (const auto& part : parts) {
      for (const auto& rule : part.text.rules) {
        builder.add({rule, part.name}, part.name == with);
      }
    }
    compiled.stages.push_back(builder.finish());
  }
  if (faults.empty()) {
    checkStagesNest(compiled, {path.string(), 0, 0}, faults);
    checkGrants(tree, compiled, path, faults);
  }
  return compiled;
}

CompiledPolicy compileExpanded(std::string_view text, const std::string& file,
                               Diagnostics& faults) {
  const auto policy = parseExpanded(text, file, faults);
  CompiledPolicy compiled{
      policy.name.text, policy.uses.empty() ? std::string{} : policy.uses.front().text, {}};
  for (const auto& stage : policy.stages) {
    StageBuilder builder(stage.name.text, faults);
    for (const auto& rule : stage.rules) {
      // A sanitizer build's text may hold an unconditional line beside the condition that it
      // covers.
      builder.add({rule, {}}, !compiled.with.empty());
    }
    compiled.stages.push_back(builder.finish());
  }
  return compiled;
}

}  // namespace cordon::policy::compiler
