#include "policy/compiler/evaluator.h"

#include <array>
#include <cstddef>
#include <linux/audit.h>
#include <sys/syscall.h>

#include <gtest/gtest.h>

#include "policy/compiler/compile.h"
#include "policy/compiler/filter.h"

namespace cordon::policy::compiler {
namespace {

constexpr std::array ALLOW_READ_OF_FD_3 = {
    sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
    sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 0, 3),
    sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
    sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 3, 0, 1),
    sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

TEST(PolicyEvaluator, FollowsLoadsAndJumps) {
  seccomp_data data{};
  data.nr = SYS_read;
  data.args[0] = 3;
  EXPECT_EQ(runFilter(ALLOW_READ_OF_FD_3, data), SECCOMP_RET_ALLOW);
  data.args[0] = 4;
  EXPECT_EQ(runFilter(ALLOW_READ_OF_FD_3, data), SECCOMP_RET_KILL_PROCESS);
  data.nr = SYS_write;
  data.args[0] = 3;
  EXPECT_EQ(runFilter(ALLOW_READ_OF_FD_3, data), SECCOMP_RET_KILL_PROCESS);
}

TEST(PolicyEvaluator, RefusesWhatTheKernelWouldNotLoad) {
  const seccomp_data data{};
  const std::array<sock_filter, 1> endless = {sock_filter BPF_STMT(BPF_LD | BPF_IMM, 0)};
  const std::array<sock_filter, 1> outside = {
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, sizeof(seccomp_data))};
  const std::array<sock_filter, 1> unaligned = {sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2)};
  const std::array<sock_filter, 1> unknown = {sock_filter BPF_STMT(0xffff, 0)};
  EXPECT_FALSE(runFilter({}, data));
  EXPECT_FALSE(runFilter(endless, data));
  EXPECT_FALSE(runFilter(outside, data));
  EXPECT_FALSE(runFilter(unaligned, data));
  EXPECT_FALSE(runFilter(unknown, data));
}

CompiledStage stageOf(const std::string& rules) {
  Diagnostics faults;
  auto policy = compileExpanded("policy probe / stage run\n" + rules, "probe.expanded", faults);
  for (const auto& fault : faults) {
    ADD_FAILURE() << describe(fault);
  }
  return policy.stages.at(0);
}

Filter filterOf(const CompiledStage& stage) {
  Diagnostics faults;
  auto filter = buildFilter(stage, {"probe", 0, 0}, faults);
  for (const auto& fault : faults) {
    ADD_FAILURE() << describe(fault);
  }
  return filter;
}

TEST(PolicyFilter, SaysWhatEveryKindOfTestSays) {
  // buildFilter compares the program with the meaning at every probe and names a difference as a
  // fault.
  for (const auto* rules :
       {"allow read\n", "errno ENOSYS clone3\nallow read\n", "allow write if fd == 2\n",
        "allow write if fd != 2\n", "allow write if fd in 1|2|7\n",
        "allow munmap if length != 4096\n",
        "allow socket if domain == AF_UNIX and type has-only SOCK_STREAM|SOCK_CLOEXEC and protocol "
        "== 0\n",
        "allow futex if op masked FUTEX_CMD_MASK in FUTEX_WAIT|FUTEX_WAKE and value != 3\n",
        "allow mmap if prot has-only PROT_READ and flags has-all MAP_PRIVATE|MAP_ANONYMOUS\n",
        "allow write if fd == 2\nallow write if fd == 3 and length == 8\nallow write if length == "
        "9\n",
        "allow getsockopt if level == SOL_SOCKET and name in SO_ERROR|SO_TYPE\n"
        "allow getsockopt if level == IPPROTO_TCP and name == TCP_NODELAY\n"
        "allow getsockopt if fd == 3\n"}) {
    SCOPED_TRACE(rules);
    EXPECT_FALSE(filterOf(stageOf(rules)).program.empty());
  }
}

TEST(PolicyFilter, IsTheSameEveryTime) {
  const auto stage =
      stageOf("allow read\nallow socket if domain == AF_UNIX\nallow write if fd in 1|2\n");
  EXPECT_EQ(bytesOf(filterOf(stage).program), bytesOf(filterOf(stage).program));
}

TEST(PolicyFilter, AWrongFilterIsFound) {
  // The positive control of the comparison: each way in which a filter could be wrong is noticed.
  const auto right = stageOf("allow read\nallow write if fd == 2\nerrno ENOSYS clone3\n");
  EXPECT_FALSE(findDifference(filterOf(right).program, right.meaning));
  for (const auto* rules :
       {"allow read\nallow write\nerrno ENOSYS clone3\n",
        "allow read\nallow write if fd == 3\nerrno ENOSYS clone3\n",
        "allow write if fd == 2\nerrno ENOSYS clone3\n",
        "allow read\nallow write if fd == 2\nerrno EACCES clone3\n",
        "allow read\nallow write if fd == 2\nerrno ENOSYS clone3\nallow close\n"}) {
    EXPECT_TRUE(findDifference(filterOf(stageOf(rules)).program, right.meaning)) << rules;
  }
}

TEST(PolicyFilter, AnEvasionByX32OrAnotherArchitectureIsFound) {
  const auto stage = stageOf("allow read\n");
  auto program = filterOf(stage).program;
  ASSERT_FALSE(findDifference(program, stage.meaning));
  // Without its check of the architecture, which stands first, the filter takes any.
  const std::array<sock_filter, 4> careless = {
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  const auto foreign = findDifference(careless, stage.meaning);
  ASSERT_TRUE(foreign);
  EXPECT_NE(foreign->probe.architecture, nativeArchitecture());
  // One that masks the number's x32 bit away takes x32 calls for native ones.
  const std::array<sock_filter, 7> masked = {
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nativeArchitecture(), 0, 4),
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x3fffffff),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  const auto x32 = findDifference(masked, stage.meaning);
  ASSERT_TRUE(x32);
  EXPECT_EQ(x32->probe.number, SYS_read | 0x40000000);
}

}  // namespace
}  // namespace cordon::policy::compiler
