#include "tests/support/residue.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "services/guest/cgroups.h"

namespace cordon::tests {
namespace {

namespace fs = std::filesystem;

// A pid that nobody has: of a child that is reaped already.
pid_t goneProcess() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

bool eventually(const std::function<bool()>& condition) {
  for (int round = 0; round < 2000; ++round) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

TEST(OwnedDirectory, SweepsWhatIsOfTheGoneAndNothingElse) {
  const fs::path parent = makeOwnedDirectory("cordon-residue-test");
  const std::string gone = std::to_string(goneProcess());
  for (const std::string& name :
       {"one-" + gone + "-abcdef/deeper", "two-" + gone + "-abcdef", std::string("one-1-abcdef"),
        std::string("one-abcdef"), "one-" + gone + "0x-abcdef", "one-" + gone,
        "one-more-" + gone + "-abcdef", std::string("one--1-abcdef"),
        "one-" + std::to_string(::getpid()) + "-abcdef"})
    fs::create_directories(parent / name);
  const fs::path made = makeOwnedDirectory(parent, "one");
  EXPECT_TRUE(made.filename().string().starts_with("one-" + std::to_string(::getpid()) + "-"));
  EXPECT_TRUE(fs::is_directory(made));
  EXPECT_FALSE(fs::exists(parent / ("one-" + gone + "-abcdef")));
  // Two of those above are of `one` and of the gone only in part; the first alone went.
  EXPECT_EQ(std::distance(fs::directory_iterator(parent), fs::directory_iterator()), 9);
  EXPECT_THROW(makeOwnedDirectory(parent / "none", "one"), std::runtime_error);
  fs::remove_all(parent);
}

TEST(DieWith, AChildEndsWithItsParent) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t middle = ::fork();
  if (middle == 0) {
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) {
      dieWith(parent);
      if (::write(ends[1], "x", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    for (;;) ::pause();
  }
  ::close(ends[1]);
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  ::kill(middle, SIGKILL);
  ::waitpid(middle, nullptr, 0);
  // The pipe ends with the last that holds it: with the child.
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);
  ::close(ends[0]);
}

TEST(DieWith, AChildOfTheGoneDoesNotBegin) {
  const pid_t child = ::fork();
  if (child == 0) {
    dieWith(::getpid());  // not its parent
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 126);
}

TEST(Commands, OfAnAgentThatIsGoneAreEnded) {
  const std::string base = guest::ownCgroup();
  const std::string gone = std::to_string(goneProcess());
  const fs::path left = base + "/cordon-exec-" + gone + "-1";
  const fs::path ours = base + "/cordon-exec-" + std::to_string(::getpid()) + "-1";
  std::error_code error;
  if (base.empty() || !fs::create_directory(left, error))
    GTEST_SKIP() << "SKIPPED(host-lacks:cgroup-v2): none that may be written";
  fs::create_directory(ours);
  const pid_t command = ::fork();
  if (command == 0) {
    std::ofstream(left / "cgroup.procs") << 0 << std::flush;
    for (;;) ::pause();
  }
  std::thread reaper([command]() {
    int status = 0;
    ::waitpid(command, &status, 0);
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
  });
  ASSERT_TRUE(eventually([&]() {
    std::ifstream events(left / "cgroup.events");
    std::string line;
    while (std::getline(events, line))
      if (line == "populated 1") return true;
    return false;
  }));
  endCommandsOfTheGone();
  reaper.join();
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(ours)) << "its maker lives";
  endCommandsOf(::getpid());
  EXPECT_FALSE(fs::exists(ours));
}

}  // namespace
}  // namespace cordon::tests
