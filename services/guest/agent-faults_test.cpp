// What must hold when the kernel refuses: an identity that does not come back, and a cgroup that
// cannot be killed at one blow. The faults are real: a seccomp filter of the test's own refuses the
// call, a mount hides the file.
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <set>
#include <sstream>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "services/guest/agent-fixture.h"
#include "services/guest/cgroups.h"
#include "services/guest/identity.h"

namespace cordon::guest {
namespace {

// From now on this call of this thread (and of what it starts) fails with EPERM where its first
// argument is `value`. Of the low half: those here are ints.
void refuse(int call, std::uint32_t value) {
  std::array<sock_filter, 6> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog loaded{static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &loaded) != 0) {
    std::perror("seccomp");
    ::_exit(124);
  }
}

// Lines of the calling thread's status: its ids and groups.
std::string threadIds() {
  std::ifstream status("/proc/thread-self/status");
  std::string all;
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Uid:") || line.starts_with("Gid:") || line.starts_with("Groups:"))
      all += line + "\n";
  return all;
}

Actor another() {
  return {.user = User{.name = "another",
                       .uid = World::POSTGRES,
                       .gid = World::POSTGRES,
                       .home = "/",
                       .shell = "",
                       .groups = {World::POSTGRES}},
          .change = true};
}

struct Restored {
  std::string before;
  bool assumed = false;
  std::string during;
  bool restored = false;
  std::string after;
};

// In a thread of its own: what is refused there is refused until it ends.
Restored changeAndRestore(int call, std::uint32_t value) {
  Restored result;
  std::thread([&]() {
    const std::array<gid_t, 2> groups{0, 61010};
    if (::syscall(SYS_setgroups, groups.size(), groups.data()) != 0) std::perror("setgroups");
    result.before = threadIds();
    if (call >= 0) refuse(call, value);
    FileIdentity identity(another());
    result.assumed = identity.assumed();
    result.during = threadIds();
    result.restored = identity.restore();
    result.after = threadIds();
  }).join();
  return result;
}

const std::string OWN = "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t0 61010 \n";
const std::string CHANGED = "Uid:\t0\t0\t0\t61002\nGid:\t0\t0\t0\t61002\nGroups:\t61002 \n";

class IdentityFaults : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "SKIPPED(host-lacks:root): another identity needs it";
  }
};

TEST_F(IdentityFaults, AControlNothingRefused) {
  const Restored one = changeAndRestore(-1, 0);
  EXPECT_EQ(one.before, OWN);
  EXPECT_TRUE(one.assumed);
  EXPECT_EQ(one.during, CHANGED);
  EXPECT_TRUE(one.restored);
  EXPECT_EQ(one.after, OWN);
}

TEST_F(IdentityFaults, AStepBackThatIsRefusedIsToldAndTheOthersAreTaken) {
  const Restored uid = changeAndRestore(SYS_setfsuid, 0);
  EXPECT_TRUE(uid.assumed);
  EXPECT_FALSE(uid.restored);
  EXPECT_EQ(uid.after, "Uid:\t0\t0\t0\t61002\nGid:\t0\t0\t0\t0\nGroups:\t0 61010 \n");

  const Restored gid = changeAndRestore(SYS_setfsgid, 0);
  EXPECT_TRUE(gid.assumed);
  EXPECT_FALSE(gid.restored);
  EXPECT_EQ(gid.after, "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t61002\nGroups:\t0 61010 \n");

  // Two groups are this thread's own, one is the other user's.
  const Restored groups = changeAndRestore(SYS_setgroups, 2);
  EXPECT_TRUE(groups.assumed);
  EXPECT_FALSE(groups.restored);
  EXPECT_EQ(groups.after, "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t61002 \n");
}

TEST_F(IdentityFaults, AStepThereThatIsRefusedIsToldAndTakenBack) {
  for (const auto& [call, value] : {std::pair<int, std::uint32_t>{SYS_setgroups, 1},
                                    {SYS_setfsgid, World::POSTGRES},
                                    {SYS_setfsuid, World::POSTGRES}}) {
    const Restored one = changeAndRestore(call, value);
    EXPECT_FALSE(one.assumed) << call;
    EXPECT_TRUE(one.restored) << call;
    EXPECT_EQ(one.after, OWN) << call;
  }
}

class AgentFaults : public AgentTest {
 protected:
  // The uids with which the agent's threads touch files, once all that end have ended.
  std::multiset<std::string> fileUids() const {
    std::multiset<std::string> found;
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
      std::ifstream status(task.path() / "status");
      for (std::string line; std::getline(status, line);)
        if (line.starts_with("Uid:")) found.insert(line.substr(line.rfind('\t') + 1));
    }
    return found;
  }
};

TEST_F(AgentFaults, AThreadThatCannotComeBackIsRetiredAndItsReplyIsSent) {
  if (IsSkipped()) return;
  beforeExec = []() { refuse(SYS_setfsuid, 0); };
  start();
  writeWhole(world.home("agent") + "/file", "content");
  constexpr int ROUNDS = 12;
  for (int round = 0; round < ROUNDS; ++round) {
    channel::ReadFile request;
    request.path = world.home("agent") + "/file";
    const Got got = ask(request);
    EXPECT_EQ(got.bulk, "content") << round;
    // A thread that kept the agent's identity would be seen as a second one, by its uid.
    ASSERT_TRUE(eventually([&] { return fileUids().count(std::to_string(World::AGENT)) == 0; }))
        << round;
    const auto entry = diagEntry("fs-identity-restore-failed");
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->level, channel::DiagLevel::ERROR);
    EXPECT_EQ(entry->requestId, channel::toHex(got.message->id));
  }
  // The main thread, the replacer and the four that stand by.
  EXPECT_TRUE(eventually([&] {
    return fileUids() == std::multiset<std::string>({"0", "0", "0", "0", "0", "0"});
  }));
  // The control: without the fault no thread is retired.
  beforeExec = nullptr;
  start();
  channel::ReadFile request;
  request.path = world.home("agent") + "/file";
  EXPECT_EQ(ask(request).bulk, "content");
  EXPECT_FALSE(diagEntry("fs-identity-restore-failed"));
}

TEST_F(AgentFaults, AThreadThatCannotChangeTouchesNoFile) {
  if (IsSkipped()) return;
  beforeExec = []() { refuse(SYS_setfsuid, World::AGENT); };
  start();
  writeWhole(world.home("agent") + "/file", "content");
  channel::ReadFile request;
  request.path = world.home("agent") + "/file";
  const auto error = ask(request).as<channel::Error>();
  EXPECT_EQ(error.errnoName, "EIO");
  EXPECT_EQ(error.message, "read_file " + world.home("agent") + "/file: cannot act as user agent");
  channel::WriteFile write;
  write.path = world.home("agent") + "/other";
  write.dataSize = 1;
  EXPECT_EQ(ask(write, "x").as<channel::Error>().errnoName, "EIO");
  EXPECT_FALSE(std::filesystem::exists(world.home("agent") + "/other"));
}

// A command's cgroup whose control files are as an older kernel has them.
class OldCgroup : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "SKIPPED(host-lacks:root): mounts need it";
    // Before the cgroup is opened: a descriptor keeps the view in which it was opened.
    ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    cgroup = cgroups.make();
    if (!cgroup) GTEST_SKIP() << "SKIPPED(host-lacks:cgroup-v2): none that may be written";
  }
  void TearDown() override {
    for (const std::string& path : hidden) ::umount2(path.c_str(), MNT_DETACH);
    for (const pid_t process : processes) {
      ::kill(process, SIGKILL);
      ::waitpid(process, nullptr, 0);
    }
    while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
    if (cgroup) cgroups.release(std::move(*cgroup));
  }

  // What is opened for writing there fails, as where there is no such file.
  void hide(const std::string& name) {
    const std::string path = cgroup->where() + "/" + name;
    ASSERT_EQ(::mount("/proc/version", path.c_str(), nullptr, MS_BIND, nullptr), 0) << path;
    ASSERT_EQ(::mount(nullptr, path.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr),
              0);
    hidden.push_back(path);
    ASSERT_LT(::open(path.c_str(), O_WRONLY | O_CLOEXEC), 0);
  }

  // A process in the cgroup that does `what` for ever. It is in there when this returns: who comes
  // in after the kill is not killed.
  template <typename What>
  void add(What what) {
    std::array<int, 2> joined{};
    ASSERT_EQ(::pipe2(joined.data(), O_CLOEXEC), 0);
    const pid_t process = ::fork();
    ASSERT_GE(process, 0);
    if (process == 0) {
      std::ofstream(cgroup->where() + "/cgroup.procs") << 0 << std::flush;
      if (::write(joined[1], "j", 1) != 1) ::_exit(1);
      ::close(joined[0]);
      ::close(joined[1]);
      for (;;) what();
    }
    ::close(joined[1]);
    processes.push_back(process);
    char byte = 0;
    const ssize_t said = ::read(joined[0], &byte, 1);
    ::close(joined[0]);
    ASSERT_EQ(said, 1);
    ASSERT_TRUE(cgroup->populated());
  }
  // Each child makes the next and ends: whoever is on a list is gone when the signal comes.
  void addRunner() {
    // Of itself over after a while: a test that fails must not leave it running for ever.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(15);
    add([end] {
      if (std::chrono::steady_clock::now() > end || ::fork() > 0) ::_exit(0);
    });
  }

  std::string contentOf(const char* name) const { return readWhole(cgroup->where() + "/" + name); }

  DiagRing diag;
  Cgroups cgroups{diag};
  std::optional<ExecCgroup> cgroup;
  std::vector<pid_t> processes;
  std::vector<std::string> hidden;
};

TEST_F(OldCgroup, WithoutTheSwitchAllAreKilledFrozen) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(hide("cgroup.kill"));
  for (int i = 0; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(add([] { ::pause(); }));
  EXPECT_TRUE(cgroup->kill());
  EXPECT_TRUE(eventually([&] { return !cgroup->populated(); }));
  EXPECT_EQ(contentOf("cgroup.freeze"), "0\n") << "what comes in later must be able to run";
}

TEST_F(OldCgroup, WithoutTheSwitchNobodyOutrunsTheKill) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(hide("cgroup.kill"));
  for (int i = 0; i < 4; ++i) ASSERT_NO_FATAL_FAILURE(addRunner());
  EXPECT_TRUE(cgroup->kill());
  EXPECT_TRUE(eventually([&] { return !cgroup->populated(); }));
}

TEST_F(OldCgroup, WithoutTheFreezerTheKillIsRepeatedAndTheEndIsTold) {
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(hide("cgroup.kill"));
  ASSERT_NO_FATAL_FAILURE(hide("cgroup.freeze"));
  for (int i = 0; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(add([] { ::pause(); }));
  EXPECT_TRUE(cgroup->kill());
  EXPECT_FALSE(cgroup->populated());
}

TEST_F(OldCgroup, AControlTheSwitchItself) {
  if (IsSkipped()) return;
  for (int i = 0; i < 4; ++i) ASSERT_NO_FATAL_FAILURE(addRunner());
  EXPECT_TRUE(cgroup->kill());
  EXPECT_TRUE(eventually([&] { return !cgroup->populated(); }));
}

}  // namespace
}  // namespace cordon::guest
