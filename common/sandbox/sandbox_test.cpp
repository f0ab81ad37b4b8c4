#include "common/sandbox/sandbox.h"

#include <array>
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "common/sandbox/status.h"
#include "policy/compiled/parser-channel.h"

namespace cordon::sandbox {
namespace {

constexpr uid_t NOBODY = 64999;
constexpr gid_t NOBODY_GROUP = 64998;

// The state of life in which a launcher hands a service over, with one thing left to do or left
// wrong.
struct Birth {
  bool isRoot = false;
  bool keepsGroup = false;
  bool keepsCapabilities = true;  // so that enter() itself has to give them up
  bool hasEmptyNetwork = true;
  bool hasForeignStatus = false;
};

void require(bool holds) {
  if (!holds) {
    _exit(99);
  }
}

void becomeNobody(const Birth& birth) {
  if (birth.hasEmptyNetwork) {
    require(unshare(CLONE_NEWNET) == 0);
  }
  const gid_t extra = 4;
  require(setgroups(birth.keepsGroup ? 1 : 0, &extra) == 0);
  require(setresgid(NOBODY_GROUP, NOBODY_GROUP, NOBODY_GROUP) == 0);
  if (birth.keepsCapabilities) {
    require(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
  }
  require(setresuid(NOBODY, NOBODY, NOBODY) == 0);
  if (!birth.keepsCapabilities) {
    return;
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  require(syscall(SYS_capget, &header, sets.data()) == 0);
  for (auto& set : sets) {
    set.effective = set.permitted;
  }
  require(syscall(SYS_capset, &header, sets.data()) == 0);
}

struct Outcome {
  bool isConfined = false;
  Failure failure{};
  int status = 0;  // of the child, as wait(2) gives it
};

// Confines a child and then runs `afterwards` in it. What the child has to say comes through a
// pipe.
Outcome confine(
    const Birth& birth, const std::function<void()>& afterwards = [] {}) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (!birth.isRoot) {
      becomeNobody(birth);
    }
    std::optional<int> statusFd;
    if (birth.hasForeignStatus) {
      statusFd = ::open("/proc/1/status", O_RDONLY | O_CLOEXEC);
    }
    const auto failure = enter({policy::PARSER_CHANNEL, {}, statusFd});
    const Outcome outcome{!failure, failure.value_or(Failure{}), 0};
    require(::write(pipe[1], &outcome, sizeof(outcome)) == sizeof(outcome));
    if (!failure) {
      afterwards();
    }
    syscall(SYS_exit_group, 0);
  }
  close(pipe[1]);
  Outcome outcome;
  EXPECT_EQ(read(pipe[0], &outcome, sizeof(outcome)), static_cast<ssize_t>(sizeof(outcome)));
  close(pipe[0]);
  EXPECT_EQ(waitpid(child, &outcome.status, 0), child);
  return outcome;
}

class Sandbox : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "SKIPPED(host-lacks:root): changes uids and namespaces";
    }
  }
};

TEST_F(Sandbox, ConfinesAProcessWithNothingLeftWrong) {
  const auto outcome = confine({});
  EXPECT_TRUE(outcome.isConfined) << describe(outcome.failure);
  EXPECT_EQ(outcome.status, 0);
}

TEST_F(Sandbox, RefusesRoot) {
  const auto outcome = confine({.isRoot = true});
  EXPECT_FALSE(outcome.isConfined);
  EXPECT_EQ(outcome.failure.step, Step::REFUSE_ROOT);
}

TEST_F(Sandbox, MakesItsOwnNetworkWhenItMay) {
  const auto outcome = confine({.hasEmptyNetwork = false});
  EXPECT_TRUE(outcome.isConfined) << describe(outcome.failure);
}

TEST_F(Sandbox, DropsForeignGroups) {
  const auto outcome = confine({.keepsGroup = true});
  EXPECT_TRUE(outcome.isConfined) << describe(outcome.failure);
}

TEST_F(Sandbox, RefusesABoundingSetThatItCannotEmpty) {
  const auto outcome = confine({.keepsCapabilities = false});
  EXPECT_FALSE(outcome.isConfined);
  EXPECT_EQ(outcome.failure.step, Step::CLEAR_BOUNDING);
  EXPECT_EQ(outcome.failure.error, EPERM);
}

TEST_F(Sandbox, RefusesAnotherProcessesStatus) {
  const auto outcome = confine({.hasForeignStatus = true});
  EXPECT_FALSE(outcome.isConfined);
  EXPECT_EQ(outcome.failure.step, Step::OPEN_STATUS);
  EXPECT_EQ(outcome.failure.found, 1U);
}

TEST_F(Sandbox, KillsWhatThePolicyDoesNotName) {
  const auto outcome = confine({}, [] { socket(AF_INET, SOCK_STREAM, 0); });
  EXPECT_TRUE(outcome.isConfined) << describe(outcome.failure);
  ASSERT_TRUE(WIFSIGNALED(outcome.status));
  EXPECT_EQ(WTERMSIG(outcome.status), SIGSYS);
}

}  // namespace
}  // namespace cordon::sandbox
