// The parser refuses to serve unless all of its confinement is there, and says which part is
// missing. Each case differs in one thing from the start that it accepts.
#include <cerrno>
#include <csignal>
#include <grp.h>
#include <sched.h>
#include <string>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/sealed-parser.h"

namespace cordon::tests {
namespace {

using sandbox::testing::becomeNewborn;
using sandbox::testing::Birth;
using ::testing::HasSubstr;

constexpr Birth GOOD{.keepsCapabilities = false, .keepsBounding = false};

class Refusal : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0)
      GTEST_SKIP() << "SKIPPED(host-lacks:root): starts a process as a launcher does";
  }
  static void expectRefused(const ParserStart& start, const std::string& missing) {
    SealedParser parser(start);
    EXPECT_FALSE(parser.waitSealed());
    const int status = parser.waitEnd();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status << " " << parser.log();
    EXPECT_THAT(parser.log(),
                HasSubstr(" error cordon-parser sandbox.refused missing=" + missing + " "));
  }
};

TEST_F(Refusal, ServesWhereNothingIsMissing) {
  SealedParser parser;
  ASSERT_TRUE(parser.waitSealed()) << parser.log();
  EXPECT_EQ(parser.status("Seccomp"), "2");
  EXPECT_EQ(parser.status("NoNewPrivs"), "1");
  EXPECT_EQ(parser.status("Threads"), "1");
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    EXPECT_EQ(parser.status(set), "0000000000000000") << set;
  }
  EXPECT_EQ(parser.status("Uid"), "64999\t64999\t64999\t64999");
}

TEST_F(Refusal, Root) {
  expectRefused({.beginning =
                     []() {
                       if (::unshare(CLONE_NEWNET) != 0) ::_exit(99);
                     }},
                "refuse-root");
}

TEST_F(Refusal, GroupRoot) {
  expectRefused({.beginning =
                     []() {
                       if (::unshare(CLONE_NEWNET) != 0 || ::setgroups(0, nullptr) != 0)
                         ::_exit(99);
                       for (unsigned long capability = 0; ::prctl(PR_CAPBSET_READ, capability) >= 0;
                            ++capability) {
                         if (::prctl(PR_CAPBSET_DROP, capability) != 0) ::_exit(99);
                       }
                       if (::setresuid(64999, 64999, 64999) != 0) ::_exit(99);
                     }},
                "verify-gids");
}

TEST_F(Refusal, AnotherGroup) {
  Birth birth = GOOD;
  birth.keepsGroup = true;
  expectRefused({.birth = birth}, "verify-groups");
}

TEST_F(Refusal, ANetwork) {
  Birth birth = GOOD;
  birth.hasEmptyNetwork = false;
  expectRefused({.birth = birth}, "isolate-network");
}

TEST_F(Refusal, ACapabilityLeftInTheBoundingSet) {
  Birth birth = GOOD;
  birth.keepsBounding = true;
  expectRefused({.birth = birth}, "clear-bounding");
}

TEST_F(Refusal, NoWayToReadWhatTheKernelSays) {
  expectRefused({.beginning =
                     []() {
                       if (::unshare(CLONE_NEWNS) != 0 ||
                           ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                           ::mount("none", "/proc", "tmpfs", 0, nullptr) != 0) {
                         ::_exit(99);
                       }
                       becomeNewborn(GOOD);
                     }},
                "open-status");
}

TEST_F(Refusal, ALogThatTheSandboxWouldStop) {
  SealedParser parser({.logsToFile = true});
  const int status = parser.waitEnd();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  EXPECT_THAT(parser.log(), HasSubstr(" error cordon-parser log.refused "));
}

}  // namespace
}  // namespace cordon::tests
