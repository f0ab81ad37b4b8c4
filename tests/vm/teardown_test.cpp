// However a range ends, nothing of it is left. No case waits for a guest to boot.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>

#include "tests/vm/booted-range.h"

namespace cordon::vm {
namespace {

using testing::HasSubstr;

class TeardownTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "SKIPPED(host-lacks:root): guests need root";
  }
  static RangeOptions starting() { return {.guests = 1, .memoryMib = 128, .waitReady = false}; }
  static pid_t pidOf(const BootedRange& range, const std::string& name) {
    // A program has its name a moment after it has begun.
    for (int i = 0; i < 500; ++i) {
      for (const HostProcess& process : processesOf(range.uid(0))) {
        if (process.name == name) return process.pid;
      }
      usleep(10'000);
    }
    ADD_FAILURE() << "no " << name << "\n" << range.logs();
    return -1;
  }
  // Never a process group, and never all there are.
  static int endProcess(pid_t pid, int signal) { return pid > 1 ? kill(pid, signal) : -1; }
  // QEMU takes SIGTERM as a wish only once it has a handler; before that it dies of it like any
  // program.
  static void waitForHandler(const BootedRange& range) {
    auto caught = [&]() {
      const std::string mask = statusLine(pidOf(range, "qemu-system-x86"), "SigCgt");
      return !mask.empty() && (std::stoull(mask, nullptr, 16) & (1ull << (SIGTERM - 1))) != 0;
    };
    for (int i = 0; i < 1000 && !caught(); ++i) usleep(10'000);
    ASSERT_TRUE(caught()) << range.logs();
  }
  // "exit 0", "signal 9"
  static std::string endOf(std::optional<int> status) {
    if (!status) return "runs";
    return WIFEXITED(*status) ? "exit " + std::to_string(WEXITSTATUS(*status))
                              : "signal " + std::to_string(WTERMSIG(*status));
  }
};

TEST_F(TeardownTest, AskedToEndTheGuestEndsInOrder) {
  BootedRange range(starting());
  waitForHandler(range);
  range.guestLauncher(0).signal(SIGTERM);
  EXPECT_EQ(endOf(range.guestLauncher(0).wait()), "exit 0");
  EXPECT_THAT(range.guestLauncher(0).log(), HasSubstr(": ended: vmm exit 0, vsock exit 0"));
  EXPECT_FALSE(std::filesystem::exists(range.guestSocket(0)));
}

TEST_F(TeardownTest, TheLauncherEndsByTheVmmsSignal) {
  BootedRange range(starting());
  ASSERT_EQ(endProcess(pidOf(range, "qemu-system-x86"), SIGKILL), 0);
  EXPECT_EQ(endOf(range.guestLauncher(0).wait()), "signal 9");
  range.tearDown();
}

TEST_F(TeardownTest, WithoutItsDeviceTheGuestEndsAsAFailure) {
  BootedRange range(starting());
  ASSERT_EQ(endProcess(pidOf(range, "cordon-vsock"), SIGKILL), 0);
  EXPECT_EQ(endOf(range.guestLauncher(0).wait()), "exit 125");
  EXPECT_THAT(range.guestLauncher(0).log(),
              HasSubstr("cell-died: step supervise: vsock: signal 9 (SIGKILL)"));
  range.tearDown();
}

// Pid 1 of a cell is the launcher's attendant: with it the kernel kills the cell.
TEST_F(TeardownTest, ACellDiesWithItsAttendant) {
  BootedRange range(starting());
  std::vector<HostProcess> attendants;
  for (const HostProcess& process : processesOf(range.uid(0))) {
    if (process.name == "cordon-launch") attendants.push_back(process);
  }
  ASSERT_EQ(attendants.size(), 2u);
  for (const HostProcess& attendant : attendants) kill(attendant.pid, SIGKILL);
  EXPECT_NE(endOf(range.guestLauncher(0).wait()), "runs");
  range.tearDown();
}

TEST_F(TeardownTest, TheParsersEndIsItsLaunchers) {
  BootedRange range(starting());
  for (const HostProcess& process : processesOf(range.parserUid())) {
    if (process.name == "cordon-parser") {
      ASSERT_EQ(kill(process.pid, SIGSYS), 0);
    }
  }
  EXPECT_EQ(endOf(range.parserLauncher().wait()), "signal 31");
  range.tearDown();
}

// A launcher that is killed cannot clean up: the kernel ends its cells, the next launcher of the
// guest its directory.
TEST_F(TeardownTest, AKilledLauncherLeavesNothingThatTheNextOneCannotTake) {
  BootedRange range(starting());
  std::vector<HostProcess> cells = processesOf(range.uid(0));
  ASSERT_EQ(cells.size(), 4u);
  range.guestLauncher(0).signal(SIGKILL);
  EXPECT_EQ(endOf(range.guestLauncher(0).wait()), "signal 9");
  for (int i = 0; i < 1000 && !processesOf(range.uid(0)).empty(); ++i) usleep(10'000);
  EXPECT_TRUE(processesOf(range.uid(0)).empty());
  EXPECT_TRUE(std::filesystem::exists(range.guestSocket(0)));

  TestFolder folder;
  Launched next({"guest", "--range", range.id(), "--cid", std::to_string(range.cid(0)), "--kernel",
                 GUEST_KERNEL, "--initrd", GUEST_INITRD, "--memory", "128", "--accel", "tcg"},
                folder.path() + "/next.log");
  EXPECT_TRUE(next.waitForLog(": running under uid")) << next.log();
  waitForHandler(range);
  next.signal(SIGTERM);
  EXPECT_EQ(endOf(next.wait()), "exit 0") << next.log();
  range.tearDown();
}

TEST_F(TeardownTest, ASecondLauncherOfARunningGuestIsRefused) {
  BootedRange range(starting());
  TestFolder folder;
  Launched second({"guest", "--range", range.id(), "--cid", std::to_string(range.cid(0)),
                   "--kernel", GUEST_KERNEL, "--initrd", GUEST_INITRD, "--accel", "tcg"},
                  folder.path() + "/second.log");
  EXPECT_EQ(endOf(second.wait()), "exit 125");
  EXPECT_THAT(second.log(),
              HasSubstr("uid-busy: step refuse-busy-uid: uid " + std::to_string(range.uid(0))));
  EXPECT_TRUE(std::filesystem::exists(range.guestSocket(0)));
  EXPECT_EQ(endOf(range.guestLauncher(0).wait(std::chrono::milliseconds(0))), "runs");
}

TEST_F(TeardownTest, WhatIsMissingIsNamedBeforeAnythingIsMade) {
  TestFolder folder;
  auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"guest", "--range", "0fee1bad", "--cid",
                                          "20999", "--accel", "tcg"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Launched launched(arguments, folder.path() + "/log");
    EXPECT_EQ(endOf(launched.wait()), "exit 125");
    EXPECT_FALSE(std::filesystem::exists("/run/cordon/ranges/0fee1bad"));
    return launched.log();
  };
  EXPECT_THAT(run({"--kernel", "/absent", "--initrd", GUEST_INITRD}),
              HasSubstr("image-missing: step open-files: /absent: ENOENT"));
  EXPECT_THAT(
      run({"--kernel", "/etc/shadow", "--initrd", GUEST_INITRD}),
      HasSubstr("image-missing: step open-files: /etc/shadow: must be readable by everyone"));
  EXPECT_THAT(
      run({"--kernel", GUEST_KERNEL, "--initrd", GUEST_INITRD, "--vsock-binary", "/absent"}),
      HasSubstr("binary-missing: step open-files: /absent: ENOENT"));
}

}  // namespace
}  // namespace cordon::vm
