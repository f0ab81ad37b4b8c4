#include "services/helper/launch/cell.h"

#include <array>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <map>
#include <memory>
#include <string>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "services/helper/launch/error.h"
#include "services/helper/launch/identity.h"
#include "services/helper/launch/supervise.h"

namespace cordon::launch {
namespace {

using testing::HasSubstr;

// By pid, so that two runs at once do not see each other's processes.
const Identity IDENTITY = guestIdentity(30000 + static_cast<std::uint32_t>(getpid()) % 30000);
constexpr const char* PROBE_IN_VIEW = "/usr/bin/cell-probe";

struct Output {
  UniqueFd reader, writer;
  Output() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) failStep("test", "pipe");
    reader = UniqueFd(ends[0]);
    writer = UniqueFd(ends[1]);
  }
  // All that comes until `until` was seen, or every writer is gone.
  std::string read(const std::string& until = "\n\n\n") {
    std::string text;
    std::array<char, 4096> buffer;
    while (text.find(until) == std::string::npos) {
      ssize_t size = ::read(reader.get(), buffer.data(), buffer.size());
      if (size <= 0) break;
      text.append(buffer.data(), static_cast<std::size_t>(size));
    }
    return text;
  }
};

std::map<std::string, std::string> factsIn(const std::string& text) {
  std::map<std::string, std::string> facts;
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    std::size_t equals = line.find('=');
    if (line.starts_with("fact ") && equals != std::string::npos)
      facts[line.substr(5, equals - 5)] = line.substr(equals + 1);
    begin = end + 1;
  }
  return facts;
}

UniqueFd openPath(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) failStep("test", path);
  return fd;
}

CellPlan probePlan(Output& output, const std::vector<std::string>& arguments) {
  CellPlan plan;
  plan.name = "probe";
  plan.identity = IDENTITY;
  addLibraries(plan.view);
  addNull(plan.view);
  plan.view.binds.push_back(bindOf(openPath(CELL_PROBE), PROBE_IN_VIEW, Execute::YES));
  plan.argv = {PROBE_IN_VIEW};
  plan.argv.insert(plan.argv.end(), arguments.begin(), arguments.end());
  plan.output = std::move(output.writer);
  return plan;
}

Outcome superviseOne(Cell cell, std::chrono::milliseconds stopTimeout = STOP_TIMEOUT) {
  UniqueFd signals = catchSignals();
  std::vector<Cell> cells;
  cells.push_back(std::move(cell));
  return supervise(std::move(cells), {}, signals, stopTimeout);
}

class CellTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "SKIPPED(host-lacks:root): cells need root";
  }
};

TEST_F(CellTest, TheProgramFindsNothingButWhatItWasGiven) {
  Output output;
  CellPlan plan = probePlan(output, {"facts"});
  std::string image = testing::TempDir() + "/cell-test-image";
  UniqueFd written(open(image.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  ASSERT_EQ(fchmod(written.get(), 0666), 0);  // so that only the view is in the way of a write
  plan.view.binds.push_back(bindOf(openPath(image), "/img/0", Execute::NO));
  plan.descriptors.push_back({openPath("/dev/null"), 5});
  setenv("SECRET", "of the launcher", 1);
  umask(0022);
  Cell cell = Cell::start(std::move(plan));
  auto facts = factsIn(output.read());
  unlink(image.c_str());

  std::string id = std::to_string(IDENTITY.uid);
  EXPECT_EQ(facts["uids"], id + "," + id + "," + id);
  EXPECT_EQ(facts["gids"], id + "," + id + "," + id);
  EXPECT_EQ(facts["groups"], "0");
  EXPECT_EQ(facts["capabilities"], "0");
  EXPECT_EQ(facts["bounding"], "0");
  EXPECT_EQ(facts["ambient"], "0");
  EXPECT_EQ(facts["no_new_privs"], "1");
  EXPECT_EQ(facts["become-root"], "EPERM");

  EXPECT_EQ(facts["pid"], "2");
  EXPECT_EQ(facts["parent"], "1");
  EXPECT_EQ(facts["host"], "cell");
  EXPECT_EQ(facts["interfaces"], "lo");
  EXPECT_EQ(facts["connect"], "ENETUNREACH");
  EXPECT_EQ(facts["mount"], "EPERM");
  EXPECT_EQ(facts["trace-pid-1"], "EPERM");

  EXPECT_EQ(facts["root"], "dev,etc,img,lib,lib64,usr");
  EXPECT_EQ(facts["dev"], "null");
  EXPECT_EQ(facts["etc"], "ld.so.cache");
  EXPECT_EQ(facts["usr"], "bin,lib,lib64");
  EXPECT_EQ(facts["img"], "0");
  EXPECT_EQ(facts["proc"], "ENOENT");
  EXPECT_EQ(facts["cwd"], "/");
  EXPECT_EQ(facts["write-root"], "EROFS");
  EXPECT_EQ(facts["write-dev"], "EROFS");
  EXPECT_EQ(facts["write-lib"], "EROFS");
  EXPECT_EQ(facts["write-image"], "EROFS");
  EXPECT_EQ(facts["read-image"], "done");
  EXPECT_EQ(facts["write-null"], "done");
  EXPECT_EQ(facts["terminal"], "ENOENT");

  EXPECT_EQ(facts["descriptors"], "0,1,2,5");
  EXPECT_EQ(facts["ignored-signals"], "0");
  EXPECT_EQ(facts["blocked-signals"], "0");
  EXPECT_EQ(facts["umask"], "077");
  EXPECT_EQ(facts["environment"], "0");
  EXPECT_EQ(facts["core"], "0");
  EXPECT_EQ(facts["session"], "own");
  EXPECT_TRUE(superviseOne(std::move(cell)).of("probe").exitedWith(0));
}

// The positive control: the same questions have other answers where no cell is.
TEST_F(CellTest, OutsideACellTheSameProgramFindsMore) {
  Output output;
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Namespaces of its own, because the probe tries to mount and to kill pid 1.
    if (unshare(CLONE_NEWNS | CLONE_NEWPID) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      _exit(1);
    }
    pid_t inner = fork();
    if (inner == 0) {
      // Not pid 1, so that pid 1 is another process.
      pid_t probe = fork();
      if (probe == 0) {
        dup2(output.writer.get(), STDOUT_FILENO);
        execl(CELL_PROBE, CELL_PROBE, "facts", nullptr);
        _exit(1);
      }
      waitpid(probe, nullptr, 0);
      _exit(0);
    }
    waitpid(inner, nullptr, 0);
    _exit(0);
  }
  output.writer.reset();
  auto facts = factsIn(output.read());
  waitpid(child, nullptr, 0);
  EXPECT_EQ(facts["uids"], "0,0,0");
  EXPECT_NE(facts["capabilities"], "0");
  EXPECT_NE(facts["bounding"], "0");
  EXPECT_EQ(facts["become-root"], "done");
  EXPECT_EQ(facts["mount"], "done");
  EXPECT_EQ(facts["trace-pid-1"], "done");
  EXPECT_EQ(facts["write-root"], "done");
  EXPECT_NE(facts["environment"], "0");
  EXPECT_THAT(facts["root"], HasSubstr("home"));
  EXPECT_NE(facts["proc"], "ENOENT");
}

TEST_F(CellTest, ItsOwnProcAndNoOtherWhereTheViewSaysSo) {
  Output output;
  CellPlan plan = probePlan(output, {"facts"});
  plan.view.proc = true;
  Cell cell = Cell::start(std::move(plan));
  auto facts = factsIn(output.read());
  EXPECT_EQ(facts["root"], "dev,etc,lib,lib64,proc,usr");
  EXPECT_EQ(facts["proc"], "2,self,thread-self");  // not even pid 1
  superviseOne(std::move(cell));
}

TEST_F(CellTest, ANodeIsTheGuestsAlone) {
  Output output;
  CellPlan plan = probePlan(output, {"facts"});
  struct stat zero {};
  ASSERT_EQ(stat("/dev/zero", &zero), 0);
  plan.view.nodes.push_back({"kvm", zero.st_rdev, IDENTITY.uid, 0600});
  Cell cell = Cell::start(std::move(plan));
  EXPECT_EQ(factsIn(output.read())["dev"], "kvm,null");
  superviseOne(std::move(cell));
}

TEST_F(CellTest, EndsAsTheProgramEnds) {
  for (auto [mode, number, described] :
       {std::tuple("exit", "0", "exit 0"), std::tuple("exit", "77", "exit 77"),
        std::tuple("signal", "11", "signal 11 (SIGSEGV)"),
        std::tuple("signal", "9", "signal 9 (SIGKILL)"),
        std::tuple("signal", "31", "signal 31 (SIGSYS)")}) {
    Output output;
    Cell cell = Cell::start(probePlan(output, {mode, number}));
    EXPECT_EQ(superviseOne(std::move(cell)).of("probe").describe(), described);
  }
}

TEST_F(CellTest, SigtermReachesTheProgram) {
  Output output;
  Cell cell = Cell::start(probePlan(output, {"until-term"}));
  output.read("fact ready=1\n");
  cell.terminate();
  EXPECT_EQ(superviseOne(std::move(cell)).of("probe").describe(), "exit 43");
}

TEST_F(CellTest, KillLeavesNoDescendant) {
  Output output;
  Cell cell = Cell::start(probePlan(output, {"deaf"}));
  output.read("fact ready=1\n");
  ASSERT_TRUE(processOf(IDENTITY.uid));
  cell.kill();
  EXPECT_EQ(superviseOne(std::move(cell)).of("probe").describe(), "signal 9 (SIGKILL)");
  output.read();  // ends because every writer is gone
  EXPECT_EQ(processOf(IDENTITY.uid), std::nullopt);
}

TEST_F(CellTest, WhoIgnoresSigtermIsKilledWithAllItStarted) {
  Output output;
  Cell cell = Cell::start(probePlan(output, {"deaf"}));
  output.read("fact ready=1\n");
  Output second;
  CellPlan plan = probePlan(second, {"exit", "5"});
  plan.name = "first";
  std::vector<Cell> cells;
  cells.push_back(Cell::start(std::move(plan)));
  cells.push_back(std::move(cell));
  UniqueFd signals = catchSignals();
  Outcome outcome = supervise(std::move(cells), {}, signals, std::chrono::milliseconds(50));
  ASSERT_EQ(outcome.ended.size(), 2u);
  EXPECT_EQ(outcome.ended[0].name, "first");
  EXPECT_EQ(outcome.ended[0].ending.describe(), "exit 5");
  EXPECT_EQ(outcome.of("probe").describe(), "signal 9 (SIGKILL)");
  EXPECT_FALSE(outcome.asked);
  EXPECT_EQ(processOf(IDENTITY.uid), std::nullopt);
}

TEST_F(CellTest, ASignalToTheLauncherEndsAllAsAsked) {
  Output output;
  UniqueFd signals = catchSignals();
  std::vector<Cell> cells;
  cells.push_back(Cell::start(probePlan(output, {"until-term"})));
  output.read("fact ready=1\n");
  ASSERT_EQ(kill(getpid(), SIGTERM), 0);
  Outcome outcome = supervise(std::move(cells), {}, signals);
  EXPECT_TRUE(outcome.asked);
  EXPECT_EQ(outcome.of("probe").describe(), "exit 43");
}

TEST_F(CellTest, DiesWithItsLauncher) {
  Output output;
  pid_t launcher = fork();
  ASSERT_GE(launcher, 0);
  if (launcher == 0) {
    Cell cell = Cell::start(probePlan(output, {"deaf"}));
    for (;;) pause();
  }
  output.writer.reset();
  ASSERT_THAT(output.read("fact ready=1\n"), HasSubstr("fact ready=1"));
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  output.read();  // ends because every writer is gone; else the test's time is up
}

TEST_F(CellTest, SaysWhichStepFailedInside) {
  Output output;
  CellPlan plan = probePlan(output, {"facts"});
  plan.argv[0] = "/usr/bin/absent";
  try {
    Cell::start(std::move(plan));
    FAIL() << "started a program that is not there";
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.code, Code::STEP_FAILED);
    EXPECT_STREQ(
        error.what(),
        "step-failed: step probe/execute: /usr/bin/absent: ENOENT (No such file or directory)");
  }
  EXPECT_EQ(processOf(IDENTITY.uid), std::nullopt);
}

TEST_F(CellTest, LeavesTheHostsMountTableAndNameAlone) {
  auto contents = [](const char* path) {
    std::string text;
    UniqueFd fd = openPath(path);
    std::array<char, 4096> buffer;
    for (ssize_t size; (size = read(fd.get(), buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(size));
    }
    return text;
  };
  // A mount table of our own, which nobody else changes meanwhile; shared, so that a cell that
  // forgot to make its own private would show.
  ASSERT_EQ(unshare(CLONE_NEWNS), 0);
  ASSERT_EQ(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  ASSERT_EQ(mount(nullptr, "/", nullptr, MS_REC | MS_SHARED, nullptr), 0);
  std::string mounts = contents("/proc/self/mountinfo");
  std::string host = contents("/proc/sys/kernel/hostname");
  Output output;
  superviseOne(Cell::start(probePlan(output, {"exit", "0"})));
  EXPECT_EQ(contents("/proc/self/mountinfo"), mounts);
  EXPECT_EQ(contents("/proc/sys/kernel/hostname"), host);
}

}  // namespace
}  // namespace cordon::launch
