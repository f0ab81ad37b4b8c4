// The catalogue against the shipped filters, and against the whole sandbox of common/sandbox: each
// attempt dies of signal 31 and nothing else, and the same attempt without the filter does not.
#include <algorithm>
#include <array>
#include <iostream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "common/sandbox/sandbox.h"
#include "common/sandbox/testing/newborn.h"
#include "policy/compiled/parser-channel.h"
#include "policy/testing/catalogue.h"
#include "policy/testing/child.h"
#include "policy/testing/shipped.h"

namespace cordon::policy::testing {
namespace {

constexpr const char* CONFINED[] = {CORDON_CONFINED_SERVICES};

bool isGrantedTo(const Attempt& attempt, const std::string& policy) {
  std::istringstream names{std::string(attempt.grantedTo)};
  return std::any_of(std::istream_iterator<std::string>(names),
                     std::istream_iterator<std::string>(),
                     [&](const std::string& name) { return name == policy; });
}

void finish(long answer) {
  syscall(SYS_exit_group, answer < 0 ? 1 : 0);
}

// Whether the attempt, unconfined, shows that only a filter can have killed it. A kernel without
// int80 or x32 kills or refuses those by itself, which is no control.
bool isControlled(const Attempt& attempt) {
  const int status = runChild({}, [&] { finish(attempt.run()); });
  EXPECT_FALSE(diedOfPolicy(status)) << attempt.name << ": " << describeStatus(status);
  if (attempt.succeedsUnconfined) {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << attempt.name << ": " << describeStatus(status);
  }
  if (WIFSIGNALED(status)) {
    std::cout << "SKIPPED(host-lacks:" << attempt.name << "): unconfined it ends by "
              << describeStatus(status) << '\n';
    return false;
  }
  return true;
}

TEST(HostileCatalogue, HasAName) {
  std::set<std::string> names;
  for (const auto& attempt : catalogue()) {
    EXPECT_TRUE(names.insert(attempt.name).second) << attempt.name;
  }
  EXPECT_GE(names.size(), 40U);
}

TEST(HostileCatalogue, DiesOfEveryShippedFilter) {
  const auto shipped = shippedPolicies();
  for (const auto& attempt : catalogue()) {
    if (!isControlled(attempt)) {
      continue;
    }
    for (const auto* name : CONFINED) {
      const auto policy = std::find_if(shipped.begin(), shipped.end(),
                                       [&](const auto& p) { return p.name == name; });
      ASSERT_NE(policy, shipped.end()) << name;
      if (isGrantedTo(attempt, name)) {
        continue;
      }
      const int status = runChild(policy->runFilter(), [&] { finish(attempt.run()); });
      EXPECT_TRUE(diedOfPolicy(status))
          << attempt.name << " under " << name << ": " << describeStatus(status);
    }
  }
}

// Enters the sandbox as cordon-parser does, says that it is in, and makes the attempt.
int attemptFromInside(const Attempt& attempt, bool& isInside) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    sandbox::testing::becomeNewborn({});
    const auto failure = sandbox::enter({PARSER_CHANNEL, {}, {}});
    const char word = failure ? 'n' : 'y';
    if (syscall(SYS_write, pipe[1], &word, 1) == 1 && !failure) {
      finish(attempt.run());
    }
    syscall(SYS_exit_group, 97);
  }
  close(pipe[1]);
  char word = 'n';
  EXPECT_EQ(read(pipe[0], &word, 1), 1);
  isInside = word == 'y';
  close(pipe[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(HostileCatalogue, DiesInsideTheParsersSandbox) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "SKIPPED(host-lacks:root): enters the sandbox from a uid of its own";
  }
  for (const auto& attempt : catalogue()) {
    if ((attempt.neededBySanitizers && !sandbox::hasMemoryLimit()) ||
        isGrantedTo(attempt, "parser-channel") || !isControlled(attempt)) {
      continue;
    }
    bool isInside = false;
    const int status = attemptFromInside(attempt, isInside);
    EXPECT_TRUE(isInside) << attempt.name;
    EXPECT_TRUE(diedOfPolicy(status)) << attempt.name << ": " << describeStatus(status);
  }
}

}  // namespace
}  // namespace cordon::policy::testing
