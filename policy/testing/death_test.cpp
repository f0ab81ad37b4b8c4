// A process that fails must fail as itself: with its own signal and its message, not as a violation
// of its policy, which would hide the bug and cry wolf.
#include <array>
#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/testing/child.h"

extern char** environ;

namespace cordon::policy::testing {
namespace {

struct Death {
  int status = 0;
  std::string message;
};

Death meet(const std::string& policy, const std::string& fate) {
  const auto filter = std::string(CORDON_SHIPPED_POLICIES) + '/' + policy + ".bpf";
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDERR_FILENO);
  const std::array<const char*, 4> arguments = {CORDON_VICTIM, filter.c_str(), fate.c_str(),
                                                nullptr};
  pid_t child = -1;
  EXPECT_EQ(posix_spawn(&child, CORDON_VICTIM, &actions, nullptr,
                        const_cast<char**>(arguments.data()), environ),
            0);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe[1]);
  Death death;
  std::array<char, 512> part{};
  for (ssize_t length = 0; (length = read(pipe[0], part.data(), part.size())) > 0;) {
    death.message.append(part.data(), static_cast<std::size_t>(length));
  }
  close(pipe[0]);
  EXPECT_EQ(waitpid(child, &death.status, 0), child);
  return death;
}

class SandboxDeath : public ::testing::TestWithParam<const char*> {
 protected:
  static void expectSignal(const Death& death, int signal) {
    EXPECT_TRUE(WIFSIGNALED(death.status) && WTERMSIG(death.status) == signal)
        << describeStatus(death.status) << ": " << death.message;
  }
  static void expectExit(const Death& death, int code) {
    EXPECT_TRUE(WIFEXITED(death.status) && WEXITSTATUS(death.status) == code)
        << describeStatus(death.status) << ": " << death.message;
  }
};

TEST_P(SandboxDeath, AbortEndsWithItsOwnSignal) {
  expectSignal(meet(GetParam(), "abort"), SIGABRT);
}

TEST_P(SandboxDeath, TerminateSaysWhy) {
  const auto death = meet(GetParam(), "terminate");
  expectSignal(death, SIGABRT);
  EXPECT_THAT(death.message, ::testing::HasSubstr("what the operator has to read"));
}

TEST_P(SandboxDeath, BadAllocSaysSo) {
  const auto death = meet(GetParam(), "bad-alloc");
  expectSignal(death, SIGABRT);
  EXPECT_THAT(death.message, ::testing::HasSubstr("std::bad_alloc"));
}

TEST_P(SandboxDeath, ACaughtBadAllocIsSurvived) {
  expectExit(meet(GetParam(), "caught-bad-alloc"), 0);
}

TEST_P(SandboxDeath, ExhaustedMemoryIsSurvived) {
  expectExit(meet(GetParam(), "exhaustion"), 0);
}

TEST_P(SandboxDeath, LargeBlocksAreResized) {
  expectExit(meet(GetParam(), "realloc"), 0);
}

TEST_P(SandboxDeath, TheClockCanBeAskedByCall) {
  expectExit(meet(GetParam(), "clock"), 0);
}

TEST_P(SandboxDeath, HeapCorruptionSaysSo) {
  const auto death = meet(GetParam(), "double-free");
  expectSignal(death, SIGABRT);
  EXPECT_THAT(death.message, ::testing::HasSubstr("double free"));
}

TEST_P(SandboxDeath, StackCorruptionSaysSo) {
  const auto death = meet(GetParam(), "overflow");
  expectSignal(death, SIGABRT);
  EXPECT_THAT(death.message, ::testing::HasSubstr("stack smashing"));
}

TEST_P(SandboxDeath, ACrashEndsWithItsOwnSignal) {
  expectSignal(meet(GetParam(), "segmentation-fault"), SIGSEGV);
}

TEST_P(SandboxDeath, ExitIsClean) {
  expectExit(meet(GetParam(), "exit"), 0);
}

INSTANTIATE_TEST_SUITE_P(Shipped, SandboxDeath, ::testing::Values(CORDON_CONFINED_SERVICES),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           for (auto& c : name) {
                             if (c == '-') {
                               c = '_';
                             }
                           }
                           return name;
                         });

}  // namespace
}  // namespace cordon::policy::testing
