// As whom commands run and files are touched.
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "services/guest/agent-fixture.h"

namespace cordon::guest {
namespace {

using channel::Error;
using channel::Exec;
using channel::ExecResult;
using channel::FileData;
using channel::Ok;
using channel::ReadFile;
using channel::WriteFile;

class IdentityTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (!IsSkipped()) start();
  }

  Got as(const std::string& user, const std::string& script) const {
    Exec exec = shell(script);
    exec.user = user;
    return ask(exec);
  }
};

constexpr const char* WHO =
    "awk '/^(Uid|Gid|Groups):/ {print}' /proc/self/status; echo $USER $HOME $PATH";

TEST_F(IdentityTest, CommandsRunAsAgentByDefault) {
  EXPECT_EQ(stdoutOf(run(WHO)),
            "Uid:\t61001\t61001\t61001\t61001\n"
            "Gid:\t61001\t61001\t61001\t61001\n"
            "Groups:\t61001 61010 \n"
            "agent " +
                world.home("agent") + " /usr/local/bin:/usr/bin:/bin\n");
  EXPECT_FALSE(diagEntry("agent-user-unavailable"));
}

TEST_F(IdentityTest, CommandsRunAsTheUserOfTheRequest) {
  EXPECT_EQ(stdoutOf(as("postgres", WHO)),
            "Uid:\t61002\t61002\t61002\t61002\n"
            "Gid:\t61002\t61002\t61002\t61002\n"
            "Groups:\t61002 61010 61011 \n"
            "postgres " +
                world.home("postgres") + " /usr/local/bin:/usr/bin:/bin\n");
  EXPECT_EQ(stdoutOf(as("root", WHO)),
            "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t0 \n"
            "root " +
                world.home("root") +
                " /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n");
  EXPECT_EQ(stdoutOf(as("homeless", "echo $SHELL $HOME")), "/bin/sh /nonexistent\n");
}

TEST_F(IdentityTest, AnAgentUserCannotReachRoot) {
  EXPECT_EQ(stdoutOf(run("grep -E '^Cap(Eff|Prm|Inh|Amb)' /proc/self/status | cut -f2 | uniq")),
            "0000000000000000\n");
  EXPECT_NE(run("echo x >/etc/cordon-test").as<ExecResult>().rc, 0);
}

TEST_F(IdentityTest, AnUnknownUserIsAResultThatNamesIt) {
  for (const char* user : {"nobody-here", "61002", "", "broken line"}) {
    auto got = as(user, "exit 0");
    EXPECT_EQ(got.as<ExecResult>().rc, 1) << user;
    EXPECT_EQ(got.as<ExecResult>().stdoutSize, 0);
    EXPECT_NE(got.bulk.find("user " + std::string(user)), std::string::npos) << got.bulk;
  }
}

TEST_F(IdentityTest, WithoutAnAgentUserTheAgentActsAsItselfAndSaysSo) {
  removeAgentUser(world);
  EXPECT_EQ(stdoutOf(run("id -u; pwd -P")), "0\n" + world.home("root") + "\n");
  auto entry = diagEntry("agent-user-unavailable");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->level, channel::DiagLevel::WARN);
}

TEST_F(IdentityTest, WithoutRootTheAgentIsWhoItIs) {
  ASSERT_EQ(::chown(world.root.c_str(), World::POSTGRES, World::POSTGRES), 0);
  start({}, 0, World::POSTGRES);
  EXPECT_EQ(stdoutOf(run("id -u; echo $HOME")), "61002\n" + world.home("postgres") + "\n");
  EXPECT_EQ(stdoutOf(as("postgres", "id -u")), "61002\n");
  auto got = as("agent", "id -u");
  EXPECT_EQ(got.as<ExecResult>().rc, 1);
  EXPECT_NE(got.bulk.find("user agent"), std::string::npos) << got.bulk;
  EXPECT_TRUE(diagEntry("agent-user-unavailable"));
  ASSERT_EQ(::chown(world.root.c_str(), 0, 0), 0);
}

TEST_F(IdentityTest, FilesBelongToAgentAndItsRightsHold) {
  WriteFile write;
  write.path = "mine";
  write.dataSize = 1;
  ask(write, "m").as<Ok>();
  struct stat status {};
  ASSERT_EQ(::stat((world.home("agent") + "/mine").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, World::AGENT);
  EXPECT_EQ(status.st_gid, World::AGENT);

  std::string secret = world.root + "/secret";
  writeWhole(secret, "s");
  ASSERT_EQ(::chmod(secret.c_str(), 0600), 0);
  ReadFile read;
  read.path = secret;
  auto error = ask(read).as<Error>();
  EXPECT_EQ(error.errnoName, "EACCES");
  EXPECT_NE(error.message.find(secret), std::string::npos);
  write.path = secret;
  EXPECT_EQ(ask(write, "x").as<Error>().errnoName, "EACCES");
  EXPECT_EQ(readWhole(secret), "s");
  // Group of the agent alone: what is open to another group of the user's is not open to files.
  ASSERT_EQ(::chown(secret.c_str(), 0, 61010), 0);
  ASSERT_EQ(::chmod(secret.c_str(), 0640), 0);
  EXPECT_EQ(ask(read).as<Error>().errnoName, "EACCES");
  ASSERT_EQ(::chown(secret.c_str(), 0, World::AGENT), 0);
  EXPECT_EQ(ask(read).bulk, "s");
}

TEST_F(IdentityTest, EveryThreadIsItselfAgainAfterFileOperations) {
  for (int round = 0; round < 20; ++round) {
    WriteFile write;
    write.path = "again";
    ask(write).as<Ok>();
    ReadFile read;
    read.path = "again";
    ask(read).as<FileData>();
  }
  std::string own = readWhole("/proc/self/status");
  auto line = [](const std::string& text, const std::string& name) {
    std::size_t at = text.find("\n" + name);
    return text.substr(at + 1, text.find('\n', at + 1) - at - 1);
  };
  int threads = 0;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::string status = readWhole(task.path() / "status");
    EXPECT_EQ(line(status, "Uid:"), "Uid:\t0\t0\t0\t0");
    EXPECT_EQ(line(status, "Gid:"), "Gid:\t0\t0\t0\t0");
    EXPECT_EQ(line(status, "Groups:"), line(own, "Groups:"));
    EXPECT_EQ(line(status, "CapEff:"), line(own, "CapEff:"));
    ++threads;
  }
  EXPECT_GE(threads, 5);
}

}  // namespace
}  // namespace cordon::guest
