#include <chrono>
#include <csignal>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "services/guest/agent-fixture.h"

namespace cordon::guest {
namespace {

using channel::Error;
using channel::Exec;
using channel::ExecResult;

class ExecTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (!IsSkipped()) start();
  }

  Got argv(const std::vector<std::string>& words) const {
    Exec exec;
    exec.cmd = words;
    return ask(exec);
  }
  Got withInput(const std::string& script, std::string_view input) const {
    Exec exec = shell(script);
    exec.dataSize = static_cast<std::int64_t>(input.size());
    return ask(exec, input);
  }
};

TEST_F(ExecTest, AnswersPingWithItsVersionAndSession) {
  auto first = ask(channel::Ping{}).as<channel::Pong>();
  auto second = ask(channel::Ping{}).as<channel::Pong>();
  EXPECT_EQ(first.daemon, "cordon-guest " CORDON_VERSION);
  EXPECT_EQ(first.protocol, 3);
  EXPECT_EQ(first.session, second.session);
  EXPECT_NE(first.session, channel::Id{});
  start();
  EXPECT_NE(ask(channel::Ping{}).as<channel::Pong>().session, first.session);
}

TEST_F(ExecTest, KeepsTheStreamsApart) {
  auto got = run("echo out; echo err >&2");
  ExecResult expected;
  expected.stdoutSize = 4;
  expected.stderrSize = 4;
  expected.dataSize = 8;
  EXPECT_EQ(got.as<ExecResult>(), expected);
  EXPECT_EQ(got.bulk, "out\nerr\n");
}

TEST_F(ExecTest, OmitsBulkWhereThereIsNoOutput) {
  EXPECT_EQ(run("exit 0").as<ExecResult>(), ExecResult{});
}

TEST_F(ExecTest, ReportsExitCodesAndSignals) {
  EXPECT_EQ(run("exit 70").as<ExecResult>().rc, 70);
  EXPECT_EQ(run("exit 255").as<ExecResult>().rc, 255);
  EXPECT_EQ(run("kill -TERM $$").as<ExecResult>().rc, -SIGTERM);
  EXPECT_EQ(run("kill -KILL $$").as<ExecResult>().rc, -SIGKILL);
}

TEST_F(ExecTest, UnknownCommandsAre127) {
  for (const char* name : {"no-such-command", "/no/such/command", "/etc/passwd/x", ""}) {
    auto got = argv({name, "x"});
    EXPECT_EQ(got.as<ExecResult>().rc, 127) << name;
    EXPECT_EQ(got.bulk, "cordon-guest: " + std::string(name) + ": command not found\n");
    EXPECT_EQ(got.as<ExecResult>().stdoutSize, 0);
  }
}

TEST_F(ExecTest, WhatCannotBeExecutedIs126) {
  for (const char* name : {"/etc/passwd", "/etc"}) {
    auto got = argv({name});
    EXPECT_EQ(got.as<ExecResult>().rc, 126) << name;
    EXPECT_EQ(got.bulk, "cordon-guest: " + std::string(name) + ": permission denied\n");
  }
  std::string script = world.root + "/no-shebang";
  writeWhole(script, "echo never\n");
  ASSERT_EQ(::chmod(script.c_str(), 0755), 0);
  auto got = argv({script});
  EXPECT_EQ(got.as<ExecResult>().rc, 126);
  EXPECT_EQ(got.bulk, "cordon-guest: " + script + ": exec format error\n");
}

TEST_F(ExecTest, LooksForCommandsInThePathOfTheCommand) {
  std::string directory = world.root + "/tools";
  ::mkdir(directory.c_str(), 0755);
  for (const char* name : {"greet", "id"}) {
    writeWhole(directory + "/" + name, "#!/bin/sh\necho mine\n");
    ASSERT_EQ(::chmod((directory + "/" + name).c_str(), 0755), 0);
  }
  EXPECT_EQ(argv({"greet"}).as<ExecResult>().rc, 127);
  Exec exec;
  exec.cmd = {"greet"};
  exec.env["PATH"] = "/no/such/place:" + directory;
  EXPECT_EQ(stdoutOf(ask(exec)), "mine\n");
  exec.cmd = {"id"};
  exec.env["PATH"] = directory + ":/usr/bin";
  EXPECT_EQ(stdoutOf(ask(exec)), "mine\n");
  // A name that may not be executed early in PATH gives way to one that may.
  ASSERT_EQ(::chmod((directory + "/id").c_str(), 0644), 0);
  EXPECT_NE(stdoutOf(ask(exec)), "mine\n");
  exec.env["PATH"] = directory;
  EXPECT_EQ(ask(exec).as<ExecResult>().rc, 126);
}

TEST_F(ExecTest, StdinIsAbsentEmptyOrExact) {
  EXPECT_EQ(stdoutOf(run("readlink /proc/self/fd/0; cat | wc -c")), "/dev/null\n0\n");
  EXPECT_EQ(stdoutOf(withInput("cat | wc -c", "")), "0\n");
  std::string every(51200, '\0');
  for (std::size_t at = 0; at < every.size(); ++at) every[at] = static_cast<char>(at);
  EXPECT_EQ(stdoutOf(withInput("cat", every)), every);
}

TEST_F(ExecTest, A40MebibyteStdinArrivesWhole) {
  std::string large(40u << 20, 'x');
  for (std::size_t at = 0; at < large.size(); at += 4099) large[at] = static_cast<char>(at * 7);
  EXPECT_EQ(stdoutOf(withInput("wc -c", large)), "41943040\n");
  writeWhole(world.root + "/large", large);
  EXPECT_EQ(stdoutOf(withInput("sha256sum | cut -c1-64", large)),
            stdoutOf(run("sha256sum <" + world.root + "/large | cut -c1-64")));
}

TEST_F(ExecTest, ACommandNeedNotReadItsStdin) {
  auto got = withInput("head -c 3; exit 5", std::string(8u << 20, 'y'));
  EXPECT_EQ(got.as<ExecResult>().rc, 5);
  EXPECT_EQ(got.bulk, "yyy");
}

TEST_F(ExecTest, OutputBeyond16MebibytesIsDrainedAndFlagged) {
  auto got = run("head -c 17825792 /dev/zero; echo done >" + world.home("agent") + "/mark; exit 3");
  const auto& result = got.as<ExecResult>();
  EXPECT_EQ(result.rc, 3);
  EXPECT_EQ(result.stdoutSize, 16777216);
  EXPECT_TRUE(result.stdoutTruncated);
  EXPECT_FALSE(result.stderrTruncated);
  EXPECT_EQ(got.bulk.size(), 16777216U);
  EXPECT_EQ(got.bulk.find_first_not_of('\0'), std::string::npos);
  EXPECT_EQ(readWhole(world.home("agent") + "/mark"), "done\n");
}

TEST_F(ExecTest, EachStreamHasItsOwnCap) {
  auto got = run("head -c 16777216 /dev/zero; head -c 16777217 /dev/zero >&2");
  const auto& result = got.as<ExecResult>();
  EXPECT_EQ(result.stdoutSize, 16777216);
  EXPECT_FALSE(result.stdoutTruncated);
  EXPECT_EQ(result.stderrSize, 16777216);
  EXPECT_TRUE(result.stderrTruncated);
}

TEST_F(ExecTest, NamesOfTheEnvironmentStandOnceAndTheRequestWins) {
  ::setenv("HOME", "/inherited", 1);
  ::setenv("CORDON_TEST_INHERITED", "kept", 1);
  start();
  Exec exec;
  exec.cmd = {"/usr/bin/env"};
  exec.env = {{"SHELL", "/bin/mine"}, {"ANSWER", "42"}, {"SPACED", "a b"}, {"EMPTY", ""}};
  std::string env = "\n" + stdoutOf(ask(exec));
  auto count = [&](const std::string& text) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = env.find(text, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  for (const std::string& line :
       {"HOME=" + world.home("agent"), std::string("USER=agent"), std::string("LOGNAME=agent"),
        std::string("SHELL=/bin/mine"), std::string("PATH=/usr/local/bin:/usr/bin:/bin"),
        std::string("ANSWER=42"), std::string("SPACED=a b"), std::string("EMPTY="),
        std::string("CORDON_TEST_INHERITED=kept")}) {
    EXPECT_EQ(count("\n" + line + "\n"), 1U) << line << " in" << env;
    EXPECT_EQ(count("\n" + line.substr(0, line.find('=') + 1)), 1U) << line;
  }
}

TEST_F(ExecTest, RefusesNamesThatNoEnvironmentCanHold) {
  for (const char* name : {"", "A=B"}) {
    Exec exec = shell("exit 0");
    exec.env[name] = "x";
    EXPECT_EQ(ask(exec).as<Error>().errnoName, "EIO") << name;
  }
}

TEST_F(ExecTest, WorkingDirectoryIsTheHomeUnlessAsked) {
  EXPECT_EQ(stdoutOf(run("pwd -P")), world.home("agent") + "\n");
  Exec exec = shell("pwd -P");
  exec.cwd = "/usr/bin";
  EXPECT_EQ(stdoutOf(ask(exec)), "/usr/bin\n");
  run("mkdir below");
  exec.cwd = "below";
  EXPECT_EQ(stdoutOf(ask(exec)), world.home("agent") + "/below\n");
  exec.cwd.reset();
  exec.user = "homeless";
  EXPECT_EQ(stdoutOf(ask(exec)), "/\n");
}

TEST_F(ExecTest, ABadWorkingDirectoryIsAnErrorThatNamesIt) {
  std::string closed = world.root + "/closed";
  ::mkdir(closed.c_str(), 0700);
  const std::vector<std::pair<std::string, std::string>> cases{{"/no/such/directory", "ENOENT"},
                                                               {"/etc/passwd", "ENOTDIR"},
                                                               {closed, "EACCES"},
                                                               {"", "ENOENT"}};
  for (const auto& [cwd, name] : cases) {
    Exec exec = shell("exit 0");
    exec.cwd = cwd;
    auto error = ask(exec).as<Error>();
    EXPECT_EQ(error.errnoName, name) << cwd;
    EXPECT_NE(error.message.find("cwd " + cwd), std::string::npos) << error.message;
    EXPECT_EQ(error.layer, std::nullopt);
  }
  // Judged as the user that runs: root may enter.
  Exec exec = shell("pwd -P");
  exec.cwd = closed;
  exec.user = "root";
  EXPECT_EQ(stdoutOf(ask(exec)), closed + "\n");
}

TEST_F(ExecTest, StartsCommandsInACleanProcess) {
  EXPECT_EQ(stdoutOf(run("umask")), "0022\n");
  std::string status = stdoutOf(argv({"/bin/cat", "/proc/self/status"}));
  for (const char* set : {"SigBlk", "SigIgn", "SigCgt"}) {
    EXPECT_NE(status.find(std::string(set) + ":\t0000000000000000\n"), std::string::npos) << set;
  }
  EXPECT_EQ(stdoutOf(argv({"/bin/ls", "/proc/self/fd"})), "0\n1\n2\n3\n");  // 3 is ls's own
  rlimit own{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &own), 0);
  EXPECT_EQ(stdoutOf(run("ulimit -n")), std::to_string(own.rlim_cur) + "\n");
  EXPECT_EQ(stdoutOf(argv({"/bin/cat", "/proc/self/oom_score_adj"})),
            readWhole("/proc/self/oom_score_adj"));
  // Where the host lets root do so; where not, diag says so.
  if (!diagEntry("oom-score-unchanged")) {
    EXPECT_EQ(readWhole("/proc/" + std::to_string(pid) + "/oom_score_adj"), "-900\n");
  }
}

TEST_F(ExecTest, ACommandLeadsAGroupButNoSession) {
  // pid, process group and session of the shell: fields 1, 5 and 6.
  auto got = stdoutOf(run("cut -d' ' -f1,5,6 /proc/$$/stat"));
  std::string session = std::to_string(::getsid(pid));
  std::string leader = got.substr(0, got.find(' '));
  EXPECT_EQ(got, leader + " " + leader + " " + session + "\n");
  EXPECT_NE(leader, session);
}

TEST_F(ExecTest, BackgroundChildrenSurviveANormalExit) {
  auto got = run("sleep 300 >/dev/null 2>&1 & echo $!");
  EXPECT_EQ(got.as<ExecResult>().rc, 0);
  pid_t child = std::stoi(stdoutOf(got));
  EXPECT_EQ(::kill(child, 0), 0);
  ::kill(child, SIGKILL);
}

TEST_F(ExecTest, ADescendantThatHoldsThePipesDelaysTheReplyBy5Seconds) {
  auto began = std::chrono::steady_clock::now();
  auto got = run("echo early; sleep 300 & exit 4");
  auto took = std::chrono::steady_clock::now() - began;
  EXPECT_EQ(got.as<ExecResult>().rc, 4);
  EXPECT_EQ(got.bulk, "early\n");
  EXPECT_GE(took, std::chrono::seconds(5));
  EXPECT_LT(took, std::chrono::seconds(20));
}

}  // namespace
}  // namespace cordon::guest
