#include "policy/compiler/meaning.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <gtest/gtest.h>

#include "policy/compiler/compile.h"

namespace cordon::policy::compiler {
namespace {

Meaning meaningOf(const std::string& rules) {
  Diagnostics faults;
  const auto policy =
      compileExpanded("policy probe / stage run\n" + rules, "probe.expanded", faults);
  for (const auto& fault : faults) {
    ADD_FAILURE() << describe(fault);
  }
  return policy.stages.at(0).meaning;
}

constexpr std::uint64_t GARBAGE = 0xdeadbeef00000000;

TEST(PolicyMeaning, AnIntLooksAtItsLowerHalfOnly) {
  const auto meaning = meaningOf("allow socket if domain == AF_UNIX\n");
  EXPECT_EQ(decide(meaning, SYS_socket, {AF_UNIX}).action, Action::ALLOW);
  EXPECT_EQ(decide(meaning, SYS_socket, {AF_UNIX | GARBAGE}).action, Action::ALLOW);
  EXPECT_EQ(decide(meaning, SYS_socket, {AF_INET}).action, Action::KILL_PROCESS);
  EXPECT_EQ(decide(meaning, SYS_socket, {AF_INET | GARBAGE}).action, Action::KILL_PROCESS);
}

TEST(PolicyMeaning, UnequalCannotBeEvadedByTheUpperHalf) {
  const auto meaning = meaningOf("allow write if fd != 2\n");
  EXPECT_EQ(decide(meaning, SYS_write, {3}).action, Action::ALLOW);
  EXPECT_EQ(decide(meaning, SYS_write, {2}).action, Action::KILL_PROCESS);
  EXPECT_EQ(decide(meaning, SYS_write, {2 | GARBAGE}).action, Action::KILL_PROCESS);
}

TEST(PolicyMeaning, ALongCountsWhole) {
  const auto meaning = meaningOf("allow munmap if length == 4096\n");
  EXPECT_EQ(decide(meaning, SYS_munmap, {0, 4096}).action, Action::ALLOW);
  EXPECT_EQ(decide(meaning, SYS_munmap, {0, 4096 | GARBAGE}).action, Action::KILL_PROCESS);
}

TEST(PolicyMeaning, FlagSets) {
  const auto only = meaningOf("allow mprotect if prot has-only PROT_READ|PROT_WRITE\n");
  EXPECT_EQ(decide(only, SYS_mprotect, {0, 0, PROT_NONE}).action, Action::ALLOW);
  EXPECT_EQ(decide(only, SYS_mprotect, {0, 0, PROT_READ | PROT_WRITE}).action, Action::ALLOW);
  EXPECT_EQ(decide(only, SYS_mprotect, {0, 0, PROT_READ | PROT_EXEC}).action, Action::KILL_PROCESS);
  const auto none = meaningOf("allow accept4 if flags has-only 0\n");
  EXPECT_EQ(decide(none, SYS_accept4, {0, 0, 0, 0}).action, Action::ALLOW);
  EXPECT_EQ(decide(none, SYS_accept4, {0, 0, 0, SOCK_CLOEXEC}).action, Action::KILL_PROCESS);
  const auto all = meaningOf("allow mmap if flags has-all MAP_ANONYMOUS|MAP_PRIVATE\n");
  EXPECT_EQ(decide(all, SYS_mmap, {0, 0, 0, MAP_PRIVATE}).action, Action::KILL_PROCESS);
  EXPECT_EQ(decide(all, SYS_mmap, {0, 0, 0, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED}).action,
            Action::ALLOW);
}

TEST(PolicyMeaning, ErrorsAndTheDefault) {
  const auto meaning = meaningOf("errno ENOSYS clone3\n");
  EXPECT_EQ(decide(meaning, SYS_clone3, {}), (Decision{Action::ERRNO, ENOSYS}));
  EXPECT_EQ(decide(meaning, SYS_clone, {}), Decision{});
  EXPECT_EQ(decide(meaning, -1, {}), Decision{});
}

TEST(PolicyContainment, IsExact) {
  const std::pair<const char*, const char*> contained[] = {
      {"allow read\nallow write\n", "allow read\n"},
      {"allow write\n", "allow write if fd == 2\n"},
      {"allow write if fd != 3\n", "allow write if fd in 1|2\n"},
      {"allow mprotect if prot has-only PROT_READ|PROT_WRITE\n",
       "allow mprotect if prot == PROT_READ\n"},
      // No single outer rule covers the inner one; together they do.
      {"allow accept4 if flags == SOCK_CLOEXEC\nallow accept4 if flags in "
       "SOCK_NONBLOCK|SOCK_STREAM\n",
       "allow accept4 if flags in SOCK_CLOEXEC|SOCK_NONBLOCK\n"},
      {"allow write if fd != 3\nallow write if fd == 3\n", "allow write\n"},
      {"errno ENOSYS clone3\n", "errno ENOSYS clone3\n"},
      {"allow clone3\n", "errno ENOSYS clone3\n"},
  };
  for (const auto& [outer, inner] : contained) {
    EXPECT_FALSE(findExcess(meaningOf(outer), meaningOf(inner))) << outer << inner;
  }
}

TEST(PolicyContainment, AnExampleShowsTheExcess) {
  const std::pair<const char*, const char*> exceeding[] = {
      {"allow read\n", "allow write\n"},
      {"allow write if fd == 2\n", "allow write\n"},
      {"allow write if fd in 1|2\n", "allow write if fd in 2|3\n"},
      {"allow write if fd != 3\n", "allow write if fd in 2|3\n"},
      {"allow mprotect if prot == PROT_READ\n",
       "allow mprotect if prot has-only PROT_READ|PROT_WRITE\n"},
      {"allow accept4 if fd == 3\nallow accept4 if flags == SOCK_CLOEXEC\n", "allow accept4\n"},
  };
  for (const auto& [outer, inner] : exceeding) {
    const auto excess = findExcess(meaningOf(outer), meaningOf(inner));
    ASSERT_TRUE(excess) << outer << inner;
    EXPECT_EQ(decide(meaningOf(outer), excess->number, excess->arguments).action,
              Action::KILL_PROCESS);
    EXPECT_EQ(decide(meaningOf(inner), excess->number, excess->arguments).action, Action::ALLOW);
  }
}

TEST(PolicyContainment, AnErrorIsNoPermission) {
  // The outer filter would answer with an error before the inner policy's call runs.
  EXPECT_TRUE(findExcess(meaningOf("errno ENOSYS clone3\n"), meaningOf("allow clone3\n")));
  EXPECT_TRUE(findExcess(meaningOf("errno ENOSYS clone3\n"), meaningOf("errno EACCES clone3\n")));
  EXPECT_TRUE(findExcess(meaningOf("allow socket if domain == AF_UNIX\n"),
                         meaningOf("errno EACCES socket\n")));
  EXPECT_TRUE(findExcess(meaningOf("allow read\n"), meaningOf("errno ENOSYS clone3\n")));
}

}  // namespace
}  // namespace cordon::policy::compiler
