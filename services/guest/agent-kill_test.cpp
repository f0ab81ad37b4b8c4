// Time-outs: who dies, how, and what the host is told.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "services/guest/agent-fixture.h"

namespace cordon::guest {
namespace {

using channel::BudgetLayer;
using channel::Error;
using channel::Exec;

class KillTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (!IsSkipped()) start();
  }

  Got timed(const std::string& script, std::int64_t commandMs) const {
    Exec exec = shell(script);
    exec.budget.commandMs = commandMs;
    return ask(exec);
  }
  bool cgroupV2() const { return !diagEntry("cgroup-unavailable").has_value(); }
  // The pid that a script wrote to a file in the agent's home.
  pid_t pidIn(const std::string& name) const {
    std::string text = readWhole(world.home("agent") + "/" + name);
    return text.empty() ? 0 : std::stoi(text);
  }
};

bool alive(pid_t process) {
  if (process <= 0 || ::kill(process, 0) != 0) return false;
  std::string stat = readWhole("/proc/" + std::to_string(process) + "/stat");
  std::size_t name = stat.rfind(") ");
  return name != std::string::npos && stat[name + 2] != 'Z';
}

double secondsSince(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

TEST_F(KillTest, AnExpiredBudgetIsETIMEOfTheCommandLayer) {
  auto began = std::chrono::steady_clock::now();
  auto got = timed("echo $$ >main; exec sleep 300", 300);
  auto error = got.as<Error>();
  EXPECT_EQ(error.errnoName, "ETIME");
  EXPECT_EQ(error.layer, BudgetLayer::COMMAND);
  EXPECT_EQ(error.partial, std::nullopt);
  EXPECT_NE(error.message.find("300 ms"), std::string::npos) << error.message;
  EXPECT_FALSE(alive(pidIn("main")));
  // TERM was enough, so no grace was waited for.
  EXPECT_LT(secondsSince(began), 5.0);
  auto entry = diagEntry("exec-budget-killed");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->requestId, channel::toHex(got.message->id));
  EXPECT_EQ(entry->level, channel::DiagLevel::WARN);
}

TEST_F(KillTest, TheUntimedBoundFiresAsCommandToo) {
  Exec exec = shell("sleep 300");
  exec.budget.untimedBoundMs = 200;
  auto error = ask(exec).as<Error>();
  EXPECT_EQ(error.errnoName, "ETIME");
  EXPECT_EQ(error.layer, BudgetLayer::COMMAND);
}

TEST_F(KillTest, PartialIsTheTailOfTheRealStream) {
  // 20 MiB, more than is kept: the tail must be of what was written, not of what was kept.
  auto error =
      timed("head -c 20971520 /dev/zero | tr '\\0' 'a'; seq 100000 101000; sleep 300", 8000)
          .as<Error>();
  std::string written;
  for (int number = 100000; number <= 101000; ++number) written += std::to_string(number) + "\n";
  ASSERT_TRUE(error.partial);
  EXPECT_EQ(*error.partial, written.substr(written.size() - 4096));
}

TEST_F(KillTest, PartialIsStderrOnlyWhereStdoutIsEmpty) {
  EXPECT_EQ(timed("echo bad >&2; sleep 300", 500).as<Error>().partial, "bad\n");
  EXPECT_EQ(timed("echo good; echo bad >&2; sleep 300", 500).as<Error>().partial, "good\n");
}

TEST_F(KillTest, PartialIsCleanText) {
  EXPECT_EQ(timed("printf 'a\\377b\\000c\\303'; sleep 300", 500).as<Error>().partial, "abc");
}

TEST_F(KillTest, AnExitOnTermIsStillETIME) {
  auto error =
      timed("trap 'echo bye; exit 0' TERM; echo hi; while :; do sleep 0.05; done", 500).as<Error>();
  EXPECT_EQ(error.errnoName, "ETIME");
  EXPECT_EQ(error.partial, "hi\nbye\n");
}

TEST_F(KillTest, KillFollowsTermAfterTheGrace) {
  auto began = std::chrono::steady_clock::now();
  auto error = timed("echo $$ >main; trap '' TERM; while :; do sleep 0.05; done", 300).as<Error>();
  EXPECT_EQ(error.errnoName, "ETIME");
  EXPECT_FALSE(alive(pidIn("main")));
  EXPECT_GE(secondsSince(began), 5.3);
  EXPECT_LT(secondsSince(began), 12.0);
}

TEST_F(KillTest, KillFollowsWhileAnythingOfTheGroupLives) {
  // The main process goes at TERM; a child that ignores it does not.
  auto error = timed(
                   "(trap '' TERM; while :; do sleep 0.05; done) >/dev/null 2>&1 & "
                   "echo $! >child; exec sleep 300",
                   300)
                   .as<Error>();
  EXPECT_EQ(error.errnoName, "ETIME");
  EXPECT_GT(pidIn("child"), 0);
  EXPECT_FALSE(alive(pidIn("child")));
}

TEST_F(KillTest, TheBudgetAlsoEndsTheWaitForPipes) {
  // The main process is gone at once; its background child keeps the pipe beyond the budget.
  auto error = timed("echo gone; sleep 300 & echo $! >child; exit 0", 1000).as<Error>();
  EXPECT_EQ(error.errnoName, "ETIME");
  EXPECT_EQ(error.partial, "gone\n");
  EXPECT_FALSE(alive(pidIn("child")));
}

TEST_F(KillTest, ASetsidChildDiesWithItsCgroup) {
  if (!cgroupV2()) GTEST_SKIP() << "SKIPPED(host-lacks:cgroup-v2): the VM tests cover it";
  auto got = timed(
      "setsid sh -c 'echo $$ >child; trap \"\" TERM; while :; do sleep 0.05; done' & "
      "while [ ! -s child ]; do sleep 0.01; done; exec sleep 300",
      2000);
  auto error = got.as<Error>();
  EXPECT_EQ(error.errnoName, "ETIME");
  EXPECT_NE(error.message.find("cgroup was killed"), std::string::npos) << error.message;
  EXPECT_GT(pidIn("child"), 0);
  EXPECT_FALSE(alive(pidIn("child")));
}

TEST_F(KillTest, ASetsidChildThatHeedsTermGetsItsGrace) {
  if (!cgroupV2()) GTEST_SKIP() << "SKIPPED(host-lacks:cgroup-v2): the VM tests cover it";
  timed(
      "setsid sh -c 'echo $$ >child; trap \"echo heard >term; exit\" TERM; "
      "while :; do sleep 0.05; done' & while [ ! -s child ]; do sleep 0.01; done; exec sleep 300",
      2000)
      .as<Error>();
  EXPECT_EQ(readWhole(world.home("agent") + "/term"), "heard\n");
}

TEST_F(KillTest, WithoutCgroupV2ASetsidChildEscapesAndDiagSaysSo) {
  // The positive control: the same command outlives the kill of its group.
  coverWithTmpfs("/sys/fs/cgroup", 4096);
  start();
  ASSERT_FALSE(cgroupV2());
  auto got = timed(
      "setsid sh -c 'echo $$ >child; exec sleep 300' >/dev/null 2>&1 & "
      "while [ ! -s child ]; do sleep 0.01; done; exec sleep 300",
      2000);
  EXPECT_EQ(got.as<Error>().errnoName, "ETIME");
  auto entry = diagEntry("exec-budget-killed");
  ASSERT_TRUE(entry);
  EXPECT_NE(entry->detail.find("may live on"), std::string::npos) << entry->detail;
  pid_t child = pidIn("child");
  EXPECT_TRUE(alive(child));
  ::kill(child, SIGKILL);
}

TEST_F(KillTest, ACgroupIsRemovedOnceItIsEmpty) {
  if (!cgroupV2()) GTEST_SKIP() << "SKIPPED(host-lacks:cgroup-v2): the VM tests cover it";
  auto got = run("grep ^0:: /proc/self/cgroup; sleep 300 >/dev/null 2>&1 & echo $!");
  std::string out = stdoutOf(got);
  std::string name = out.substr(3, out.find('\n') - 3);
  ASSERT_NE(name.find("cordon-exec-" + std::to_string(pid) + "-"), std::string::npos) << out;
  pid_t child = std::stoi(out.substr(out.find('\n') + 1));
  std::string path;
  for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    if (std::filesystem::exists(mount + name)) path = mount + name;
  }
  ASSERT_FALSE(path.empty()) << name;
  run("exit 0");
  EXPECT_TRUE(std::filesystem::exists(path)) << "it still holds a process";
  ::kill(child, SIGKILL);
  EXPECT_TRUE(eventually([&] {
    run("exit 0");
    return !std::filesystem::exists(path);
  }));
}

}  // namespace
}  // namespace cordon::guest
