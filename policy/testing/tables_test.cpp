// What people read beside the policies, held to what is there: tests that are named exist, owners
// exist, artefacts are those of the texts, and the compiler refuses as a build would see it.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sandbox/sandbox.h"
#include "policy/compiled/parser-channel.h"
#include "policy/compiler/compile.h"
#include "policy/compiler/emit.h"
#include "policy/testing/shipped.h"

namespace cordon::policy::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// "SUITE.CASE" of every test in the tree's sources.
std::set<std::string> testsOfTheTree() {
  static const std::regex TEST_LINE(R"(TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\))");
  std::set<std::string> tests;
  for (const auto* folder : {"common", "policy", "services", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(sourceRoot()) / folder)) {
      if (!entry.path().string().ends_with("_test.cpp")) {
        continue;
      }
      const auto text = read(entry.path());
      for (std::sregex_iterator match(text.begin(), text.end(), TEST_LINE), end; match != end;
           ++match) {
        tests.insert((*match)[1].str() + '.' + (*match)[2].str());
      }
    }
  }
  return tests;
}

class PolicyTables : public ::testing::Test {
 protected:
  PolicyTables() : root(fs::path(sourceRoot()) / "policy") {
    const auto text = compiler::readText(root / "GRANTS.md", faults);
    tree = {root, compiler::parseGrants(text, "GRANTS.md", faults)};
    changes = compiler::parseChanges(compiler::readText(root / "CHANGES.md", faults), "CHANGES.md",
                                     faults);
  }
  void TearDown() override {
    for (const auto& fault : faults) {
      ADD_FAILURE() << describe(fault);
    }
  }

  fs::path root;
  compiler::Diagnostics faults;
  compiler::Tree tree;
  std::vector<compiler::Change> changes;
};

TEST_F(PolicyTables, EveryTestThatIsNamedExists) {
  const auto tests = testsOfTheTree();
  ASSERT_TRUE(tests.count("PolicyTables.EveryTestThatIsNamedExists") == 1);
  for (const auto& grant : tree.grants) {
    EXPECT_TRUE(tests.count(grant.test) == 1) << grant.id << " names " << grant.test;
  }
  for (const auto& change : changes) {
    EXPECT_TRUE(tests.count(change.test) == 1)
        << "change " << change.number << " names " << change.test;
  }
  for (const auto& shipped : shippedPolicies()) {
    const auto policy = compiler::compilePolicy(tree, shipped.name, {}, faults);
    for (const auto& stage : policy.stages) {
      for (const auto& rule : stage.rules) {
        EXPECT_TRUE(!rule.isRare || tests.count(rule.testName) == 1)
            << shipped.name << ": " << rule.line << " names " << rule.testName;
      }
    }
  }
}

TEST_F(PolicyTables, EveryGrantHasAnOwnerThatExists) {
  for (const auto& grant : tree.grants) {
    EXPECT_TRUE(grant.owner.starts_with("services/") &&
                fs::is_directory(fs::path(sourceRoot()) / grant.owner))
        << grant.id << ": " << grant.owner;
  }
}

TEST_F(PolicyTables, EveryPolicyHasAnExpectedTextAndNoOtherIsThere) {
  std::set<std::string> policies;
  for (const auto& shipped : shippedPolicies()) {
    policies.insert(shipped.name + ".expanded");
  }
  std::set<std::string> expected;
  for (const auto& entry : fs::directory_iterator(root / "expected")) {
    expected.insert(entry.path().filename());
  }
  EXPECT_EQ(expected, policies);
}

TEST_F(PolicyTables, SanitizersJoinOnlyTheirBuilds) {
  for (const auto& shipped : shippedPolicies()) {
    EXPECT_THAT(shipped.expanded, ::testing::Not(HasSubstr("sanitizers"))) << shipped.name;
  }
  const std::string embedded(PARSER_CHANNEL.expanded);
  const bool isSanitized = !sandbox::hasMemoryLimit();
  EXPECT_EQ(embedded.find(" / with fragments/sanitizers\n") != std::string::npos, isSanitized);
  for (const auto& grant : tree.grants) {
    // Only that fragment has rows of its own: any other must be granted to each process by name.
    EXPECT_TRUE(!grant.policy.starts_with("fragments/") || grant.policy == "fragments/sanitizers")
        << grant.id;
  }
}

TEST_F(PolicyTables, TheEmbeddedHashIsThatOfTheFilter) {
  for (const auto& shipped : shippedPolicies()) {
    if (shipped.name != PARSER_CHANNEL.name) {
      continue;
    }
    const bool isShipped = shipped.expanded == PARSER_CHANNEL.expanded;
    EXPECT_EQ(isShipped, sandbox::hasMemoryLimit());
    EXPECT_EQ(compiler::sha256Hex(compiler::bytesOf(shipped.runFilter())) == PARSER_CHANNEL.sha256,
              isShipped);
  }
  const compiler::Program embedded(PARSER_CHANNEL.run.begin(), PARSER_CHANNEL.run.end());
  EXPECT_EQ(compiler::sha256Hex(compiler::bytesOf(embedded)), PARSER_CHANNEL.sha256);
}

struct Run {
  int status = -1;
  std::string output;
};

Run runCompiler(const std::string& arguments) {
  Run run;
  FILE* pipe = popen((std::string(CORDON_POLICYC) + ' ' + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) {
    return run;
  }
  char part[512];
  while (std::fgets(part, sizeof(part), pipe) != nullptr) {
    run.output += part;
  }
  const int status = pclose(pipe);
  run.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return run;
}

// A copy of the policies that a test may spoil.
class ScratchPolicies {
 public:
  ScratchPolicies()
      : root(fs::temp_directory_path() / ("cordon-tables-" + std::to_string(getpid()))) {
    fs::remove_all(root);
    fs::copy(fs::path(sourceRoot()) / "policy", root, fs::copy_options::recursive);
  }
  ScratchPolicies(const ScratchPolicies&) = delete;
  ScratchPolicies& operator=(const ScratchPolicies&) = delete;
  ~ScratchPolicies() { fs::remove_all(root); }

  void append(const std::string& file, const std::string& text) const {
    std::ofstream(root / file, std::ios::app) << text;
  }
  Run run(const std::string& command, const std::string& rest) const {
    return runCompiler(command + " --root " + root.string() + ' ' + rest);
  }
  std::string out() const { return (root / "out").string(); }

 private:
  fs::path root;
};

TEST(PolicyBuild, ADangerousCallWithoutItsGrantFailsIt) {
  const ScratchPolicies policies;
  const auto compile = "--out " + policies.out() + " parser-channel";
  EXPECT_EQ(policies.run("compile", compile).status, 0);
  policies.append("seccomp/parser-channel.policy",
                  "allow ptrace because \"it seemed a good idea\"\n");
  const auto run = policies.run("compile", compile);
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.output, HasSubstr("parser-channel.policy:"));
  EXPECT_THAT(run.output,
              HasSubstr("'allow ptrace' reaches other processes' memory and registers"));
  EXPECT_THAT(run.output, HasSubstr("remedy: "));
}

TEST(PolicyBuild, GivesTheSameBytesEveryTime) {
  const ScratchPolicies policies;
  for (const auto* folder : {"/a", "/b"}) {
    EXPECT_EQ(
        policies.run("compile", "--out " + policies.out() + folder + " parser-channel").status, 0);
  }
  for (const auto* suffix : {".bpf", ".pfc", ".expanded", ".h", ".cpp"}) {
    const auto first = read(policies.out() + "/a/parser-channel" + suffix);
    EXPECT_FALSE(first.empty()) << suffix;
    EXPECT_EQ(first, read(policies.out() + "/b/parser-channel" + suffix)) << suffix;
  }
}

TEST(PolicyBuild, AChangeWithoutItsRowFailsTheReplay) {
  const ScratchPolicies policies;
  EXPECT_EQ(policies.run("replay", "").status, 0);
  EXPECT_EQ(policies.run("change", "parser-channel").output.find("|  |  |") != std::string::npos,
            true);
  policies.append("expected/parser-channel.expanded", "errno ENOSYS clone3\n");
  const auto run = policies.run("replay", "");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.output, HasSubstr("do not give parser-channel.expanded"));
  // The row that the compiler offers, once the policy says so too, mends it.
  policies.append("seccomp/parser-channel.policy",
                  "errno ENOSYS clone3 because \"the C library has a fallback\"\n");
  const auto row = policies.run("change", "parser-channel");
  EXPECT_EQ(row.status, 0);
  EXPECT_THAT(row.output, HasSubstr("| `errno ENOSYS clone3` |"));
  policies.append("CHANGES.md", row.output);
  EXPECT_EQ(policies.run("replay", "").status, 0);
}

TEST(PolicyBuild, ContainsDecidesByExitCode) {
  const ScratchPolicies policies;
  const auto folder = policies.out();
  fs::create_directories(folder);
  std::ofstream(folder + "/outer") << "policy outer / stage run\nallow read\nallow write\n";
  std::ofstream(folder + "/inner") << "policy inner / stage run\nallow write if fd == 2\n";
  EXPECT_EQ(runCompiler("contains " + folder + "/outer " + folder + "/inner").status, 0);
  const auto run = runCompiler("contains " + folder + "/inner " + folder + "/outer");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.output, HasSubstr("permits read("));
}

TEST(PolicyBuild, UsageIsExitTwo) {
  for (const auto* arguments :
       {"", "nonsense", "compile", "compile --root", "print --root x a b", "contains a"}) {
    const auto run = runCompiler(arguments);
    EXPECT_EQ(run.status, 2) << arguments;
    EXPECT_THAT(run.output, HasSubstr("usage: cordon-policyc"));
  }
}

}  // namespace
}  // namespace cordon::policy::testing
