// Every fault that the language knows, with the file that shows it, and where it is reported.
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/compiler/compile.h"
#include "policy/compiler/emit.h"

namespace cordon::policy::compiler {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;

constexpr char HEAD[] = "policy probe\ndefault kill-process\narch native\n";
constexpr char WHY[] = " because \"a reason that is long enough\"\n";

std::string policyOf(const std::string& rest) {
  return HEAD + rest;
}
std::string runOf(const std::string& rest) {
  return policyOf("stage run\n" + rest);
}

// A tree of policies in a folder of its own, removed with the object.
class ScratchTree {
 public:
  explicit ScratchTree(const Files& files) : root(fs::temp_directory_path() / name()) {
    fs::create_directories(root / "seccomp/fragments");
    for (const auto& [path, text] : files) {
      std::ofstream(root / path, std::ios::binary) << text;
    }
  }
  ScratchTree(const ScratchTree&) = delete;
  ScratchTree& operator=(const ScratchTree&) = delete;
  ~ScratchTree() { fs::remove_all(root); }

  CompiledPolicy compile(const std::string& grants, Diagnostics& faults,
                         const std::string& with = {}) const {
    return compilePolicy({root, parseGrants(grants, "GRANTS.md", faults)}, "probe", with, faults);
  }

 private:
  static std::string name() {
    static int serial = 0;
    return "cordon-policy-" + std::to_string(getpid()) + '-' + std::to_string(++serial);
  }

  fs::path root;
};

Diagnostics faultsOf(const Files& files, const std::string& grants = {}) {
  Diagnostics faults;
  ScratchTree(files).compile(grants, faults);
  return faults;
}

Diagnostics faultsOf(const std::string& policy) {
  return faultsOf(Files{{"seccomp/probe.policy", policy}});
}

struct Case {
  const char* name;
  Fault fault;
  unsigned line;
  unsigned column;
  std::string policy;
};

void PrintTo(const Case& value, std::ostream* stream) {
  *stream << value.name;
}

class PolicyLanguage : public testing::TestWithParam<Case> {};

TEST_P(PolicyLanguage, NamesTheFaultItsPlaceAndARemedy) {
  const auto& expected = GetParam();
  const auto faults = faultsOf(expected.policy);
  ASSERT_FALSE(faults.empty());
  const auto& fault = faults.front();
  EXPECT_EQ(static_cast<int>(fault.fault), static_cast<int>(expected.fault)) << describe(fault);
  EXPECT_EQ(fault.place.line, expected.line) << describe(fault);
  EXPECT_EQ(fault.place.column, expected.column) << describe(fault);
  EXPECT_THAT(fault.place.file, testing::HasSubstr("probe.policy"));
  EXPECT_GE(fault.remedy.size(), 8U);
  EXPECT_THAT(describe(fault), testing::HasSubstr("\n  remedy: "));
}

std::string manyRules(unsigned count) {
  std::string rules;
  for (unsigned i = 0; i < count; ++i) {
    rules += "allow epoll_ctl if fd == " + std::to_string(i) + WHY;
  }
  return rules;
}

const Case CASES[] = {
    {"Empty", Fault::SYNTAX, 0, 0, ""},
    {"NoFinalLineFeed", Fault::SYNTAX, 0, 0, runOf("allow read because \"long enough\"")},
    {"NonAscii", Fault::NON_ASCII, 5, 21, runOf("allow read because \"\xc3\xa9t\xc3\xa9\"\n")},
    {"CarriageReturn", Fault::NON_ASCII, 1, 13, "policy probe\r\ndefault kill-process\n"},
    {"Tab", Fault::NON_ASCII, 5, 6, runOf("allow\tread because \"long enough\"\n")},
    {"LineTooLong", Fault::LINE_TOO_LONG, 5, 121, runOf(std::string(121, '#') + '\n')},
    {"TooManyRules", Fault::TOO_MANY_RULES, 85, 1, runOf(manyRules(81))},
    {"NoPolicyLine", Fault::SYNTAX, 1, 1, "default kill-process\n"},
    {"NameIsNotTheFiles", Fault::NAME_MISMATCH, 1, 8, "policy other\n"},
    {"NoDefault", Fault::SYNTAX, 2, 1, "policy probe\narch native\n"},
    {"AnotherDefault", Fault::SYNTAX, 2, 9, "policy probe\ndefault trap\narch native\n"},
    {"AnotherArchitecture", Fault::SYNTAX, 3, 6, "policy probe\ndefault kill-process\narch arm\n"},
    {"EndsEarly", Fault::SYNTAX, 0, 0, "policy probe\ndefault kill-process\n"},
    {"UnknownFragment", Fault::UNKNOWN_FRAGMENT, 4, 5,
     policyOf("use fragments/none\nstage run\nallow read" + std::string(WHY))},
    {"FragmentElsewhere", Fault::UNKNOWN_FRAGMENT, 4, 5,
     policyOf("use other/none\nstage run\nallow read" + std::string(WHY))},
    {"FragmentByPath", Fault::UNKNOWN_FRAGMENT, 4, 5,
     policyOf("use fragments/../probe\nstage run\nallow read" + std::string(WHY))},
    {"UseAfterStage", Fault::SYNTAX, 5, 1, runOf("use fragments/none\n")},
    {"NoStage", Fault::STAGE_ORDER, 4, 1, policyOf("allow read" + std::string(WHY))},
    {"NoRunStage", Fault::STAGE_ORDER, 0, 0, policyOf("stage boot\nallow read" + std::string(WHY))},
    {"AnotherStage", Fault::STAGE_ORDER, 4, 7,
     policyOf("stage late\nallow read" + std::string(WHY))},
    {"StageTwice", Fault::STAGE_ORDER, 6, 7,
     runOf("allow read" + std::string(WHY) + "stage run\nallow write" + WHY)},
    {"BootAfterRun", Fault::STAGE_ORDER, 6, 7,
     runOf("allow read" + std::string(WHY) + "stage boot\nallow write" + WHY)},
    {"EmptyStage", Fault::SYNTAX, 4, 7, policyOf("stage run\n")},
    {"NoVerb", Fault::SYNTAX, 5, 1, runOf("permit read" + std::string(WHY))},
    {"KillIsTheDefault", Fault::ACTION_IS_DEFAULT, 5, 1, runOf("kill ptrace" + std::string(WHY))},
    {"UnknownCall", Fault::UNKNOWN_CALL, 5, 13, runOf("allow read, raed" + std::string(WHY))},
    {"CallOfAnotherArchitecture", Fault::UNKNOWN_CALL, 5, 7,
     runOf("allow recv" + std::string(WHY))},
    {"UnknownArgument", Fault::UNKNOWN_ARGUMENT, 5, 17,
     runOf("allow socket if family == AF_UNIX" + std::string(WHY))},
    {"ArgumentsOfThisCallUnknown", Fault::UNKNOWN_ARGUMENT, 5, 15,
     runOf("allow sync if fd == 1" + std::string(WHY))},
    {"UnknownConstant", Fault::UNKNOWN_CONSTANT, 5, 27,
     runOf("allow socket if domain == AF_UNIXX" + std::string(WHY))},
    {"ConstantOfAnotherFamily", Fault::UNFIT_CONSTANT, 5, 27,
     runOf("allow socket if domain == SOCK_STREAM" + std::string(WHY))},
    {"PointerArgument", Fault::POINTER_ARGUMENT, 5, 18,
     runOf("allow connect if address == 0" + std::string(WHY))},
    {"LessThan", Fault::ORDERING_TEST, 5, 19, runOf("allow write if fd < 3" + std::string(WHY))},
    {"GreaterOrEqual", Fault::ORDERING_TEST, 5, 19,
     runOf("allow write if fd >= 3" + std::string(WHY))},
    {"ArgumentTwice", Fault::ARGUMENT_TWICE, 5, 28,
     runOf("allow write if fd != 1 and fd != 2" + std::string(WHY))},
    {"BareNumber", Fault::BARE_NUMBER, 5, 27,
     runOf("allow socket if domain == 1" + std::string(WHY))},
    {"HexadecimalNumber", Fault::UNKNOWN_CONSTANT, 5, 22,
     runOf("allow write if fd == 0x2" + std::string(WHY))},
    {"LeadingZero", Fault::UNFIT_CONSTANT, 5, 22,
     runOf("allow write if fd == 02" + std::string(WHY))},
    {"NumberOverWidth", Fault::UNFIT_CONSTANT, 5, 22,
     runOf("allow write if fd == 4294967296" + std::string(WHY))},
    {"FlagsOfADescriptor", Fault::UNFIT_TEST, 5, 16,
     runOf("allow write if fd has-only O_RDONLY" + std::string(WHY))},
    {"ZeroAmongFlags", Fault::NEVER_MATCHES, 5, 46,
     runOf("allow accept4 if flags has-only SOCK_CLOEXEC|0" + std::string(WHY))},
    {"HasAllOfNothing", Fault::NEVER_MATCHES, 5, 32,
     runOf("allow accept4 if flags has-all 0" + std::string(WHY))},
    {"ValueOutsideMask", Fault::NEVER_MATCHES, 5, 44,
     runOf("allow futex if op masked FUTEX_CMD_MASK in FUTEX_PRIVATE_FLAG" + std::string(WHY))},
    {"ValueTwice", Fault::DUPLICATE_RULE, 5, 34,
     runOf("allow shutdown if how in SHUT_RD|SHUT_RD" + std::string(WHY))},
    {"NoReason", Fault::MISSING_BECAUSE, 5, 11, runOf("allow read\n")},
    {"ReasonWithoutQuotes", Fault::MISSING_BECAUSE, 5, 20, runOf("allow read because streams\n")},
    {"ReasonNotClosed", Fault::SYNTAX, 5, 20, runOf("allow read because \"streams are read\n")},
    {"ReasonTooShort", Fault::BECAUSE_LENGTH, 5, 20, runOf("allow read because \"streams\"\n")},
    {"ReasonTooLong", Fault::LINE_TOO_LONG, 5, 121,
     runOf("allow read because \"" + std::string(101, 'x') + "\"\n")},
    {"RareWithoutTest", Fault::MISSING_TEST_NAME, 5, 49,
     runOf("rare read because \"a reason that is long enough\"\n")},
    {"UnknownErrno", Fault::UNKNOWN_ERRNO, 5, 7, runOf("errno EPERM clone3" + std::string(WHY))},
    {"ErrnoWithCondition", Fault::ERRNO_CONDITION, 5, 21,
     runOf("errno ENOSYS socket if domain == AF_UNIX" + std::string(WHY))},
    {"Duplicate", Fault::DUPLICATE_RULE, 6, 7,
     runOf("allow read" + std::string(WHY) + "allow read" + WHY)},
    {"DuplicateOnOneLine", Fault::DUPLICATE_RULE, 5, 13,
     runOf("allow read, read" + std::string(WHY))},
    {"DuplicateInAnotherOrder", Fault::DUPLICATE_RULE, 6, 7,
     runOf("allow accept4 if fd == 3 and flags == SOCK_CLOEXEC" + std::string(WHY) +
           "allow accept4 if flags == SOCK_CLOEXEC and fd == 3" + WHY)},
    {"Shadowed", Fault::SHADOWED_RULE, 5, 7,
     runOf("allow write if fd == 2" + std::string(WHY) + "allow write" + WHY)},
    {"ShadowedLater", Fault::SHADOWED_RULE, 6, 7,
     runOf("allow write" + std::string(WHY) + "allow write if fd == 2" + WHY)},
    {"AllowedAndAnsweredWithAnError", Fault::CONTRADICTION, 6, 14,
     runOf("allow write if fd == 2" + std::string(WHY) + "errno ENOSYS write" + WHY)},
    {"TwoErrors", Fault::CONTRADICTION, 6, 14,
     runOf("errno ENOSYS clone3" + std::string(WHY) + "errno EACCES clone3" + WHY)},
    {"Dangerous", Fault::DANGEROUS_WITHOUT_GRANT, 5, 13,
     runOf("allow read, execve" + std::string(WHY))},
    {"ExecutableMapping", Fault::DANGEROUS_WITHOUT_GRANT, 5, 7,
     runOf("allow mmap if prot has-only PROT_READ|PROT_EXEC" + std::string(WHY))},
    {"UntestedProtection", Fault::DANGEROUS_WITHOUT_GRANT, 5, 7,
     runOf("allow mprotect" + std::string(WHY))},
    {"CloneOfAProcess", Fault::DANGEROUS_WITHOUT_GRANT, 5, 7,
     runOf("allow clone if flags has-only CLONE_THREAD|CLONE_VM" + std::string(WHY))},
    {"SignalsToOthers", Fault::DANGEROUS_WITHOUT_GRANT, 5, 7,
     runOf("allow tgkill" + std::string(WHY))},
    {"RunExceedsBoot", Fault::NOT_CONTAINED, 0, 0,
     policyOf("stage boot\nallow read" + std::string(WHY) + "stage run\nallow write" + WHY)},
    {"RunExceedsBootByAnArgument", Fault::NOT_CONTAINED, 0, 0,
     policyOf("stage boot\nallow write if fd in 1|2" + std::string(WHY) +
              "stage run\nallow write if fd in 2|3" + WHY)},
    {"SomethingAfterTheReason", Fault::SYNTAX, 5, 51,
     runOf("allow read because \"a reason that is long enough\" too\n")},
    {"StrayCharacter", Fault::SYNTAX, 5, 7, runOf("allow $read" + std::string(WHY))},
    {"UnknownTest", Fault::SYNTAX, 5, 19, runOf("allow write if fd like 3" + std::string(WHY))},
};

INSTANTIATE_TEST_SUITE_P(Faults, PolicyLanguage, testing::ValuesIn(CASES),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(PolicyFragments, HaveOneLevelAndNoStage) {
  const auto policy = policyOf("use fragments/part\nstage run\nallow write" + std::string(WHY));
  const auto fragment = [&](const std::string& text) {
    return faultsOf({{"seccomp/probe.policy", policy}, {"seccomp/fragments/part.policy", text}});
  };
  EXPECT_TRUE(fragment("fragment part\nallow read" + std::string(WHY)).empty());
  const std::pair<Fault, std::string> refused[] = {
      {Fault::FRAGMENT_USES, "fragment part\nuse fragments/other\nallow read" + std::string(WHY)},
      {Fault::FRAGMENT_HAS_STAGE, "fragment part\nstage run\nallow read" + std::string(WHY)},
      {Fault::NAME_MISMATCH, "fragment other\nallow read" + std::string(WHY)},
      {Fault::DUPLICATE_RULE, "fragment part\nallow write" + std::string(WHY)},
      {Fault::SYNTAX, "fragment part\n"},
      {Fault::SYNTAX, "policy part\n"},
  };
  for (const auto& [fault, text] : refused) {
    const auto faults = fragment(text);
    ASSERT_FALSE(faults.empty()) << text;
    EXPECT_EQ(static_cast<int>(faults.front().fault), static_cast<int>(fault))
        << describe(faults.front());
    EXPECT_THAT(faults.front().place.file, testing::HasSubstr("fragments/part.policy"));
  }
}

TEST(PolicyFragments, AreUsedOnce) {
  const auto faults = faultsOf(
      {{"seccomp/probe.policy", policyOf("use fragments/part\nuse fragments/part\nstage run\n"
                                         "allow write" +
                                         std::string(WHY))},
       {"seccomp/fragments/part.policy", "fragment part\nallow read" + std::string(WHY)}});
  ASSERT_FALSE(faults.empty());
  EXPECT_EQ(faults.front().fault, Fault::DUPLICATE_RULE);
  EXPECT_EQ(faults.front().place.line, 5U);
}

constexpr char GRANT[] =
    "| id | policy | line | gain | why | bound | owner | test "
    "|\n|---|---|---|---|---|---|---|---|\n";

TEST(PolicyGrants, ADangerousLineNeedsItsOwnRow) {
  const Files files{
      {"seccomp/probe.policy", runOf("allow socket if domain == AF_UNIX" + std::string(WHY))}};
  const std::string row =
      "| G1 | probe | `allow socket if domain == AF_UNIX` | a | b | c | services/d | `E.F` |\n";
  EXPECT_TRUE(faultsOf(files, GRANT + row).empty());
  const auto none = faultsOf(files, GRANT);
  ASSERT_EQ(none.size(), 1U);
  EXPECT_EQ(none[0].fault, Fault::DANGEROUS_WITHOUT_GRANT);
  // Another line, or another policy's line, grants nothing.
  EXPECT_EQ(
      faultsOf(files, GRANT + std::string("| G1 | probe | `allow socket` | a | b | c | d | e |\n"))
          .size(),
      2U);
  EXPECT_EQ(
      faultsOf(
          files,
          GRANT + std::string(
                      "| G1 | other | `allow socket if domain == AF_UNIX` | a | b | c | d | e |\n"))
          .size(),
      1U);
}

TEST(PolicyGrants, ARowWithoutItsLineIsStale) {
  const Files files{{"seccomp/probe.policy", runOf("allow read" + std::string(WHY))}};
  const auto faults =
      faultsOf(files, GRANT + std::string("| G1 | probe | `allow read` | a | b | c | d | e |\n"));
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].fault, Fault::STALE_GRANT);
  EXPECT_EQ(faults[0].place.line, 3U);
}

TEST(PolicyGrants, TheTableIsStrict) {
  const Files files{{"seccomp/probe.policy", runOf("allow read" + std::string(WHY))}};
  for (const auto* row :
       {"| G1 | other | `allow fork` | a | b | c | d |\n",
        "| G1 | other | `allow fork` |  | b | c | d | e |\n",
        "| G1 | o | `x` | a | b | c | d | e |\n| G1 | o | `y` | a | b | c | d | e |\n"}) {
    const auto faults = faultsOf(files, GRANT + std::string(row));
    ASSERT_EQ(faults.size(), 1U) << row;
    EXPECT_EQ(faults[0].fault, Fault::MALFORMED_TABLE) << row;
  }
}

TEST(PolicyGrants, HarmlessUsesNeedNone) {
  EXPECT_TRUE(faultsOf(runOf("allow mmap if prot has-only PROT_READ|PROT_WRITE" + std::string(WHY) +
                             "allow mprotect if prot in PROT_NONE|PROT_READ" + WHY +
                             "allow clone if flags has-all CLONE_THREAD|CLONE_VM" + WHY +
                             "allow tgkill if sig == SIGABRT" + WHY + "errno ENOSYS clone3" + WHY))
                  .empty());
}

TEST(PolicyExpansion, IsCanonical) {
  Diagnostics faults;
  const ScratchTree tree(
      {{"seccomp/probe.policy",
        policyOf("use fragments/part\nstage run  # the only one\n\n"
                 "allow write, close" +
                 std::string(WHY) +
                 "allow epoll_ctl if fd in 7|3 and op in EPOLL_CTL_MOD|EPOLL_CTL_ADD" + WHY)},
       {"seccomp/fragments/part.policy",
        "fragment part\nerrno ENOSYS clone3" + std::string(WHY) + "rare brk" +
            std::string(WHY).substr(0, std::string(WHY).size() - 1) + " test A.B\n"}});
  const auto policy = tree.compile({}, faults);
  ASSERT_TRUE(faults.empty()) << describe(faults[0]);
  const std::string expected =
      "policy probe / stage run\nallow brk\nallow close\n"
      "allow epoll_ctl if op in EPOLL_CTL_ADD|EPOLL_CTL_MOD and fd in 3|7\nallow write\nerrno "
      "ENOSYS clone3\n";
  EXPECT_EQ(expandedText(policy), expected);
  // What the artefact says is what it means: reading it back gives the same again.
  const auto again = compileExpanded(expected, "probe.expanded", faults);
  EXPECT_TRUE(faults.empty());
  EXPECT_EQ(expandedText(again), expected);
  EXPECT_TRUE(policy.stages[0].rules[0].isRare);
  EXPECT_EQ(policy.stages[0].rules[0].testName, "A.B");
}

TEST(PolicyExpansion, AllFaultsAreNamedInOneRun) {
  const auto faults = faultsOf(runOf("allow raed" + std::string(WHY) + "allow write if df == 1" +
                                     WHY + "allow socket if domain == AF_X" + WHY));
  ASSERT_EQ(faults.size(), 3U);
  EXPECT_EQ(faults[0].fault, Fault::UNKNOWN_CALL);
  EXPECT_EQ(faults[1].fault, Fault::UNKNOWN_ARGUMENT);
  EXPECT_EQ(faults[2].fault, Fault::UNKNOWN_CONSTANT);
}

TEST(PolicyExpansion, SanitizersAreNamedAndMayRepeat) {
  Diagnostics faults;
  const ScratchTree tree(
      {{"seccomp/probe.policy", runOf("allow write if fd == 2" + std::string(WHY))},
       {"seccomp/fragments/sanitizers.policy",
        "fragment sanitizers\nallow write, close" + std::string(WHY)}});
  const auto policy = tree.compile({}, faults, "fragments/sanitizers");
  ASSERT_TRUE(faults.empty()) << describe(faults[0]);
  EXPECT_EQ(expandedText(policy),
            "policy probe / stage run / with fragments/sanitizers\nallow close\nallow write\nallow "
            "write if fd == 2\n");
}

}  // namespace
}  // namespace cordon::policy::compiler
