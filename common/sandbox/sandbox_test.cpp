#include "common/sandbox/sandbox.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sandbox/testing/newborn.h"
#include "policy/compiled/parser-channel.h"

namespace cordon::sandbox {
namespace {

using testing::becomeNewborn;
using testing::Birth;
using testing::NEWBORN_GID;

void require(bool holds) {
  if (!holds) {
    _exit(99);
  }
}

struct Outcome {
  bool isConfined = false;
  Failure failure{};
  int status = 0;  // of the child, as wait(2) gives it
};

// Confines a child and then runs `afterwards` in it. What the child has to say comes through a
// pipe.
Outcome confine(
    const Birth& birth, const std::function<void()>& afterwards = [] {},
    const char* statusPath = nullptr, const Limits& limits = {}, bool keepsForeignGroups = false) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    becomeNewborn(birth);
    std::optional<int> statusFd;
    if (statusPath != nullptr) {
      statusFd = ::open(statusPath, O_RDONLY | O_CLOEXEC);
    }
    const auto failure = enter({policy::PARSER_CHANNEL, limits, statusFd, keepsForeignGroups});
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

class Sandbox : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "SKIPPED(host-lacks:root): changes uids and namespaces";
    }
  }
};

void expectFailure(const Outcome& outcome, Step step, int error, std::uint64_t found) {
  EXPECT_FALSE(outcome.isConfined);
  EXPECT_STREQ(nameOf(outcome.failure.step), nameOf(step));
  EXPECT_EQ(outcome.failure.error, error) << describe(outcome.failure);
  EXPECT_EQ(outcome.failure.found, found) << describe(outcome.failure);
}

TEST_F(Sandbox, ConfinesAProcessThatStillHasEveryCapability) {
  const auto outcome = confine({});
  EXPECT_TRUE(outcome.isConfined) << describe(outcome.failure);
  EXPECT_EQ(outcome.status, 0);
}

TEST_F(Sandbox, ConfinesAProcessThatHasNothingLeft) {
  const auto outcome = confine({.keepsCapabilities = false, .keepsBounding = false});
  EXPECT_TRUE(outcome.isConfined) << describe(outcome.failure);
  EXPECT_EQ(outcome.status, 0);
}

TEST_F(Sandbox, RefusesRoot) {
  const auto failure = enter({policy::PARSER_CHANNEL, {}, {}});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->step, Step::REFUSE_ROOT);
  // Nothing has been given up: the process is as it was.
  EXPECT_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
}

TEST_F(Sandbox, DropsForeignGroupsWhenItMay) {
  const auto outcome = confine({.keepsGroup = true});
  EXPECT_TRUE(outcome.isConfined) << describe(outcome.failure);
}

TEST_F(Sandbox, RefusesForeignGroupsThatItCannotDrop) {
  expectFailure(confine({.keepsGroup = true, .keepsCapabilities = false, .keepsBounding = false}),
                Step::VERIFY_GROUPS, 0, NEWBORN_GID - 1);
}

TEST_F(Sandbox, KeepsForeignGroupsOnlyWhereItIsTold) {
  const auto outcome = confine(
      {.keepsGroup = true, .keepsCapabilities = false, .keepsBounding = false}, [] {}, nullptr, {},
      true);
  EXPECT_TRUE(outcome.isConfined) << describe(outcome.failure);
}

TEST_F(Sandbox, MakesItsOwnNetworkWhenItMay) {
  const auto outcome = confine({.hasEmptyNetwork = false});
  EXPECT_TRUE(outcome.isConfined) << describe(outcome.failure);
}

TEST_F(Sandbox, RefusesANetworkThatItCannotLeave) {
  const auto outcome =
      confine({.keepsCapabilities = false, .keepsBounding = false, .hasEmptyNetwork = false});
  EXPECT_FALSE(outcome.isConfined);
  EXPECT_STREQ(nameOf(outcome.failure.step), "isolate-network");
  EXPECT_EQ(outcome.failure.error, 0);
}

TEST_F(Sandbox, RefusesABoundingSetThatItCannotEmpty) {
  expectFailure(confine({.keepsCapabilities = false}), Step::CLEAR_BOUNDING, EPERM, 0);
}

TEST_F(Sandbox, TakesAnInheritedStatus) {
  const auto outcome = confine(
      {}, [] {}, "/proc/self/status");
  EXPECT_TRUE(outcome.isConfined) << describe(outcome.failure);
}

TEST_F(Sandbox, RefusesAnotherProcessesStatus) {
  expectFailure(confine(
                    {}, [] {}, "/proc/1/status"),
                Step::OPEN_STATUS, 0, 1);
}

TEST_F(Sandbox, RefusesAStatusThatIsNoProcFile) {
  const auto outcome = confine(
      {}, [] {}, "/dev/null");
  EXPECT_FALSE(outcome.isConfined);
  EXPECT_STREQ(nameOf(outcome.failure.step), "open-status");
}

TEST_F(Sandbox, SetsEveryLimitSoftAndHard) {
  const Limits limits{.openFiles = 50,
                      .processes = 1,
                      .fileSize = 2,
                      .lockedMemory = 3,
                      .addressSpace = {},
                      .processorSeconds = 4};
  // The policy has no call that reads limits: the parent reads them while the child waits for the
  // end of the pair.
  std::array<int, 2> pair{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(pair[0]);
    becomeNewborn({});
    char isConfined = enter({policy::PARSER_CHANNEL, limits, {}}) ? 'n' : 'y';
    require(write(pair[1], &isConfined, 1) == 1);
    syscall(SYS_exit_group, static_cast<int>(read(pair[1], &isConfined, 1)));
  }
  close(pair[1]);
  char isConfined = 'n';
  ASSERT_EQ(read(pair[0], &isConfined, 1), 1);
  EXPECT_EQ(isConfined, 'y');
  std::ifstream file("/proc/" + std::to_string(child) + "/limits");
  const std::string found{std::istreambuf_iterator<char>(file), {}};
  const std::pair<std::string, std::string> wanted[] = {{"Max core file size", "0"},
                                                        {"Max open files", "50"},
                                                        {"Max processes", "1"},
                                                        {"Max file size", "2"},
                                                        {"Max locked memory", "3"}};
  for (const auto& [name, value] : wanted) {
    EXPECT_THAT(found, ::testing::ContainsRegex(name + " +" + value + " +" + value + " "));
  }
  EXPECT_THAT(found, ::testing::ContainsRegex("Max cpu time +4 +5 "));
  close(pair[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(Sandbox, BoundsItsMemoryWhereABuildCan) {
  if (!hasMemoryLimit()) {
    GTEST_SKIP() << "SKIPPED(not-applicable): AddressSanitizer needs its address space";
  }
  const auto outcome = confine({},
                               [] {
                                 constexpr std::size_t MORE = std::size_t{1} << 30;
                                 void* block = mmap(nullptr, MORE, PROT_READ | PROT_WRITE,
                                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                                 require(block == MAP_FAILED && errno == ENOMEM);
                               },
                               nullptr, {.addressSpace = std::uint64_t{256} << 20});
  EXPECT_TRUE(outcome.isConfined) << describe(outcome.failure);
  EXPECT_EQ(outcome.status, 0);
}

TEST_F(Sandbox, EndsWhatTakesTooMuchProcessorTime) {
  const auto outcome = confine({},
                               [] {
                                 volatile bool isOn = true;
                                 while (isOn) {
                                 }
                               },
                               nullptr, {.processorSeconds = 1});
  EXPECT_TRUE(outcome.isConfined) << describe(outcome.failure);
  ASSERT_TRUE(WIFSIGNALED(outcome.status));
  EXPECT_EQ(WTERMSIG(outcome.status), SIGXCPU);
}

TEST_F(Sandbox, KillsWhatThePolicyDoesNotName) {
  const auto outcome = confine({}, [] { socket(AF_INET, SOCK_STREAM, 0); });
  EXPECT_TRUE(outcome.isConfined) << describe(outcome.failure);
  ASSERT_TRUE(WIFSIGNALED(outcome.status));
  EXPECT_EQ(WTERMSIG(outcome.status), SIGSYS);
}

TEST_F(Sandbox, IsEnteredOnce) {
  // Under the filter there is no way to a second one: whoever tries dies before it could loosen
  // anything.
  const auto outcome = confine({}, [] { (void)enter({policy::PARSER_CHANNEL, {}, {}}); });
  EXPECT_TRUE(outcome.isConfined);
  ASSERT_TRUE(WIFSIGNALED(outcome.status));
  EXPECT_EQ(WTERMSIG(outcome.status), SIGSYS);
}

#ifdef CORDON_SANITIZED
TEST_F(Sandbox, ASanitizersReportIsNotADeathByPolicy) {
  // The report is smaller than a pipe, so that nobody has to read while it is written.
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const int original = dup(STDERR_FILENO);
  dup2(pipe[1], STDERR_FILENO);
  const auto outcome = confine({}, [] {
    auto* volatile block = new char[1];
    delete[] block;
    block[0] = 'x';
  });
  dup2(original, STDERR_FILENO);
  close(original);
  close(pipe[1]);
  std::string report(65536, '\0');
  const auto length = read(pipe[0], report.data(), report.size());
  close(pipe[0]);
  report.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  EXPECT_TRUE(outcome.isConfined);
  EXPECT_TRUE(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 1) << outcome.status;
  EXPECT_THAT(report, ::testing::HasSubstr("heap-use-after-free"));
  EXPECT_THAT(report, ::testing::HasSubstr("sandbox_test.cpp"));
}

TEST_F(Sandbox, AnExitIsNotStoppedByTheLeakCheck) {
  const auto outcome = confine({}, [] { std::exit(0); });
  EXPECT_TRUE(outcome.isConfined);
  EXPECT_EQ(outcome.status, 0);
}
#endif

TEST(SandboxFilter, RefusesAnEmptyProgram) {
  EXPECT_EQ(loadFilter({}), EINVAL);
}

TEST(SandboxPolicy, PrintsTheTextAndTheHash) {
  const auto text = printable(policy::PARSER_CHANNEL);
  EXPECT_EQ(text.find("policy parser-channel / stage run"), 0U);
  EXPECT_NE(text.find("\nsha256 " + std::string(policy::PARSER_CHANNEL.sha256) + '\n'),
            std::string::npos);
  EXPECT_EQ(policy::PARSER_CHANNEL.sha256.size(), 64U);
  EXPECT_EQ(policy::PARSER_CHANNEL.shortHash().size(), 12U);
  EXPECT_TRUE(policy::PARSER_CHANNEL.boot.empty());
}

TEST(SandboxFailure, NamesTheStepWhatWasFoundAndTheError) {
  EXPECT_EQ(describe({Step::VERIFY_BOUNDING, 0, 512}), "not confined: verify-bounding found 512");
  EXPECT_EQ(describe({Step::LOAD_FILTER, EINVAL, 0}),
            "not confined: load-filter found 0, errno 22 (Invalid argument)");
}

}  // namespace
}  // namespace cordon::sandbox
