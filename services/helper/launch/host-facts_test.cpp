// What cordon-launch asks the host: who holds an uid, and whether KVM is of use.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "services/helper/launch/error.h"
#include "services/helper/launch/identity.h"
#include "services/helper/launch/kvm-probe.h"

namespace cordon::launch {
namespace {

TEST(Identity, IsComputedFromTheCid) {
  EXPECT_EQ(guestIdentity(10000), (Identity{1879058192, 1879058192}));
  EXPECT_EQ(channelParserIdentity(10000), (Identity{1879123728, 1879123728}));
  // No guest has a parser's uid, whatever their CIDs.
  EXPECT_LT(guestIdentity(MAX_CID).uid, channelParserIdentity(MIN_CID).uid);
}

class ProcTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/proc-test.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    proc = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(proc); }
  void addProcess(const std::string& pid, const std::string& state, const std::string& uids) {
    std::filesystem::create_directory(proc + "/" + pid);
    std::ofstream(proc + "/" + pid + "/status")
        << "Name:\tx\nState:\t" << state << "\nPid:\t" << pid << "\nUid:\t" << uids
        << "\nGid:\t7\t7\t7\t7\n";
  }
  std::string proc;
};

TEST_F(ProcTest, FindsAnyOfTheFourUids) {
  addProcess("1", "S (sleeping)", "0\t0\t0\t0");
  EXPECT_EQ(processOf(7, proc), std::nullopt);  // a gid is none
  for (const char* uids : {"7\t0\t0\t0", "0\t7\t0\t0", "0\t0\t7\t0", "0\t0\t0\t7"}) {
    addProcess("22", "S (sleeping)", uids);
    EXPECT_EQ(processOf(7, proc), 22) << uids;
  }
}

TEST_F(ProcTest, PassesOverTheDeadAndWhatIsNoProcess) {
  addProcess("22", "Z (zombie)", "7\t7\t7\t7");
  addProcess("self", "S (sleeping)", "7\t7\t7\t7");
  std::filesystem::create_directory(proc + "/23");  // ended while we looked
  EXPECT_EQ(processOf(7, proc), std::nullopt);
}

TEST(Identity, OurOwnUidIsBusy) {
  EXPECT_TRUE(processOf(getuid()));
  try {
    refuseBusyUid(getuid());
    FAIL() << "took an uid that is in use";
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.code, Code::UID_BUSY);
  }
}

TEST(KvmProbe, SaysWhyThereIsNone) {
  EXPECT_EQ(probeKvm("/dev/absent").why, "/dev/absent is absent");
  KvmProbe other = probeKvm("/dev/null");
  EXPECT_FALSE(other.usable);
  EXPECT_EQ(other.why, "/dev/null does not work: API version");
}

TEST(KvmProbe, AnswersInTime) {
  auto begin = std::chrono::steady_clock::now();
  KvmProbe probe = probeKvm("/dev/kvm", std::chrono::milliseconds(200));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(probe.usable, probe.why.empty());
}

}  // namespace
}  // namespace cordon::launch
