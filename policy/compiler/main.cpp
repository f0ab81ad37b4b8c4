// cordon-policyc: compiles and checks the policies of a tree. See policy/README.md.
#include <algorithm>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "policy/compiler/compile.h"
#include "policy/compiler/emit.h"
#include "policy/compiler/filter.h"
#include "policy/compiler/resolve.h"

namespace {

using namespace cordon::policy::compiler;
namespace fs = std::filesystem;

constexpr int EXIT_REFUSED = 1;
constexpr int EXIT_USAGE = 2;

constexpr char USAGE[] =
    "usage: cordon-policyc compile --root POLICY_DIR --out DIR [--with fragments/NAME] NAME\n"
    "         writes NAME.{expanded,pfc,bpf,h,cpp} (and NAME.boot.{pfc,bpf}) into DIR\n"
    "       cordon-policyc print --root POLICY_DIR NAME      the expanded text\n"
    "       cordon-policyc contains OUTER.expanded INNER.expanded\n"
    "         exit 0 if every call that INNER permits in stage run is permitted by OUTER\n"
    "       cordon-policyc replay --root POLICY_DIR          CHANGES.md from empty gives every "
    "expected/*.expanded\n"
    "       cordon-policyc change --root POLICY_DIR NAME     the row that CHANGES.md lacks, to be "
    "completed\n";

struct UsageError {};

struct Options {
  std::map<std::string, std::string> named;
  std::vector<std::string> names;

  const std::string& need(const std::string& option) const {
    const auto found = named.find(option);
    if (found == named.end()) {
      throw UsageError{};
    }
    return found->second;
  }

  const std::string& name(std::size_t index, std::size_t count) const {
    if (names.size() != count) {
      throw UsageError{};
    }
    return names[index];
  }
};

Options parseOptions(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const auto& argument = arguments[i];
    if (argument == "--root" || argument == "--out" || argument == "--with") {
      if (i + 1 == arguments.size()) {
        throw UsageError{};
      }
      options.named[argument] = arguments[++i];
    } else if (argument.starts_with("-")) {
      throw UsageError{};
    } else {
      options.names.push_back(argument);
    }
  }
  return options;
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) {
    throw std::runtime_error("cannot write " + path.string());
  }
}

Tree readTree(const fs::path& root, Diagnostics& faults) {
  const auto path = root / "GRANTS.md";
  const auto text = readText(path, faults);
  return {root, parseGrants(text, path.string(), faults)};
}

CompiledPolicy compileNamed(const Options& options, Diagnostics& faults) {
  const auto tree = readTree(options.need("--root"), faults);
  const auto with = options.named.find("--with");
  return compilePolicy(tree, options.name(0, 1), with == options.named.end() ? "" : with->second,
                       faults);
}

void compile(const Options& options, Diagnostics& faults) {
  const fs::path out = options.need("--out");
  const auto policy = compileNamed(options, faults);
  if (!faults.empty()) {
    return;
  }
  std::vector<Filter> filters;
  for (const auto& stage : policy.stages) {
    filters.push_back(buildFilter(stage, {policy.name, 0, 0}, faults));
  }
  if (!faults.empty()) {
    return;
  }
  fs::create_directories(out);
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const auto stem = policy.name + (policy.stages[i].name == "boot" ? ".boot" : "");
    write(out / (stem + ".pfc"), filters[i].pseudoCode);
    write(out / (stem + ".bpf"), bytesOf(filters[i].program));
  }
  write(out / (policy.name + ".expanded"), expandedText(policy));
  write(out / (policy.name + ".h"), headerText(policy));
  write(out / (policy.name + ".cpp"), sourceText(policy, filters));
}

void print(const Options& options, Diagnostics& faults) {
  const auto policy = compileNamed(options, faults);
  if (faults.empty()) {
    std::cout << expandedText(policy);
  }
}

Meaning runMeaning(const std::string& path, Diagnostics& faults) {
  const auto policy = compileExpanded(readText(path, faults), path, faults);
  if (policy.stages.empty() || policy.stages.back().name != "run") {
    faults.push_back({Fault::STAGE_ORDER, {path, 0, 0}, "no stage run", "name an .expanded file"});
    return {};
  }
  return policy.stages.back().meaning;
}

void contains(const Options& options, Diagnostics& faults) {
  const auto& outerPath = options.name(0, 2);
  const auto& innerPath = options.name(1, 2);
  const auto outer = runMeaning(outerPath, faults);
  const auto inner = runMeaning(innerPath, faults);
  if (!faults.empty()) {
    return;
  }
  if (const auto excess = findExcess(outer, inner)) {
    faults.push_back({Fault::NOT_CONTAINED,
                      {innerPath, 0, 0},
                      "permits " + describeExcess(*excess) + ", which " + outerPath + " does not",
                      "allow it in the outer policy: a filter that is entered through another can "
                      "only be narrower"});
  }
}

void applyChange(const Change& change, std::set<std::string>& lines, Diagnostics& faults) {
  for (const auto& line : change.removed) {
    if (lines.erase(line) == 0) {
      faults.push_back({Fault::MALFORMED_TABLE, change.place,
                        "removes '" + line + "', which " + change.policy + " does not have",
                        "write the row that 'cordon-policyc change' prints"});
    }
  }
  for (const auto& line : change.added) {
    if (!lines.insert(line).second) {
      faults.push_back({Fault::MALFORMED_TABLE, change.place,
                        "adds '" + line + "', which " + change.policy + " has already",
                        "write the row that 'cordon-policyc change' prints"});
    }
  }
  const auto text = expandedFrom(change.policy, {lines.begin(), lines.end()});
  const auto digest = sha256Hex(text).substr(0, change.digest.size());
  if (change.digest.size() != 12 || digest != change.digest) {
    faults.push_back(
        {Fault::MALFORMED_TABLE, change.place,
         "after this row " + change.policy + " has the digest " + sha256Hex(text).substr(0, 12),
         "write the row that 'cordon-policyc change' prints"});
  }
}

void replay(const Options& options, Diagnostics& faults) {
  const fs::path root = options.need("--root");
  const auto path = root / "CHANGES.md";
  std::map<std::string, std::set<std::string>> policies;
  for (const auto& change : parseChanges(readText(path, faults), path.string(), faults)) {
    applyChange(change, policies[change.policy], faults);
  }
  for (const auto& entry : fs::directory_iterator(root / "expected")) {
    const auto name = entry.path().stem().string();
    const auto lines = policies.find(name);
    const auto text = lines == policies.end()
                          ? std::string{}
                          : expandedFrom(name, {lines->second.begin(), lines->second.end()});
    if (text != readText(entry.path(), faults)) {
      faults.push_back(
          {Fault::MALFORMED_TABLE,
           {path.string(), 0, 0},
           "its rows do not give " + entry.path().filename().string(),
           "append the row that 'cordon-policyc change --root policy " + name + "' prints"});
    }
    if (lines != policies.end()) {
      policies.erase(lines);
    }
  }
  for (const auto& [name, lines] : policies) {
    if (!lines.empty()) {
      faults.push_back({Fault::MALFORMED_TABLE,
                        {path.string(), 0, 0},
                        "its rows give " + name + ", which expected/ does not have",
                        "append a row that removes every line"});
    }
  }
}

void change(const Options& options, Diagnostics& faults) {
  const fs::path root = options.need("--root");
  const auto path = root / "CHANGES.md";
  const auto changes = parseChanges(readText(path, faults), path.string(), faults);
  const auto after = compileNamed(options, faults);
  std::set<std::string> lines;
  for (const auto& row : changes) {
    if (row.policy == after.name) {
      applyChange(row, lines, faults);
    }
  }
  const auto text = expandedFrom(after.name, {lines.begin(), lines.end()});
  const auto before = compileExpanded(text, path.string(), faults);
  if (faults.empty()) {
    std::cout << changeRow(changes.size() + 1, before, after);
  }
}

const std::map<std::string, std::function<void(const Options&, Diagnostics&)>> COMMANDS = {
    {"compile", compile},
    {"print", print},
    {"contains", contains},
    {"replay", replay},
    {"change", change}};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    const auto command = arguments.empty() ? COMMANDS.end() : COMMANDS.find(arguments[0]);
    if (command == COMMANDS.end()) {
      throw UsageError{};
    }
    Diagnostics faults;
    command->second(parseOptions(arguments), faults);
    for (const auto& fault : faults) {
      std::cerr << describe(fault) << '\n';
    }
    return faults.empty() ? 0 : EXIT_REFUSED;
  } catch (const UsageError&) {
    std::cerr << USAGE;
    return EXIT_USAGE;
  } catch (const std::exception& error) {
    std::cerr << "cordon-policyc: " << error.what() << '\n';
    return EXIT_REFUSED;
  }
}
