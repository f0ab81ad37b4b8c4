// The CLI as a process, with a reader beside it that does what a test wants: what it is born with,
// and what becomes of a reader that is lost or lies. Root only.
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <map>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "services/cli/read/conversation.h"
#include "services/cli/read/reader-identity.h"
#include "services/cli/testing/cli-process.h"

namespace cordon::cli::testing {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const char* const LOST =
    R"({"status":"refused","reason":"reader-lost","totals":{"cases":0,"passed":0,"failed":0,)"
    R"("errored":0,"skipped":0,"flaky":0,"unknown":0},"green":false,"claims_mismatch":false,)"
    R"("findings":[],"truncated":false,"cases":[]})"
    "\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

class ScriptedReader : public ::testing::Test {
 protected:
  CliResult run(const std::string& script, const Caller& caller = {}) {
    return runCli(place.cli(), {"read", "junit", place.write("script", script), "--json"}, caller);
  }

  // What the reader says of itself.
  std::vector<std::string> born(const Caller& caller) {
    const CliResult result = run("itself", caller);
    EXPECT_EQ(result.code, 0) << result.err;
    std::vector<std::string> names;
    const auto json = nlohmann::json::parse(result.out);
    for (const auto& one : json["cases"]) names.push_back(one["name"]);
    return names;
  }

  Installation place{CORDON_CLI_BINARY, CORDON_SCRIPTED_READER};
};

std::string linkOf(const std::string& path) {
  return std::filesystem::read_symlink(path).string();
}

void leaveRemains() {
  // A descriptor, an ignored signal, a blocked one: all of it would pass through exec.
  ::dup2(STDOUT_FILENO, 77);
  ::signal(SIGUSR1, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t blocked;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR2);
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
}

TEST_F(ScriptedReader, IsBelievedWhenHonest) {
  const CliResult result = run("honest");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr(R"("green":true)"));
}

TEST_F(ScriptedReader, IsBornWithNothing) {
  for (const Caller& who : {Caller{}, ORDINARY_USER}) {
    Caller caller = who;
    caller.environment = {{"LD_LIBRARY_PATH", "/nowhere"}, {"SECRET", "s"}};
    caller.beginning = leaveRemains;
    const auto names = born(caller);
    for (const char* line :
         {"arguments: --role read --rpc-fd 3 --file-fd 4", "variables: 0", "cwd: /",
          "descriptors: 0 1 2 3 4", "session: own", "NoNewPrivs: 1", "CapInh: 0000000000000000",
          "CapPrm: 0000000000000000", "CapEff: 0000000000000000", "CapBnd: 0000000000000000",
          "CapAmb: 0000000000000000", "SigBlk: 0000000000000000", "SigIgn: 0000000000000000"}) {
      EXPECT_THAT(names, Contains(line)) << who.uid;
    }
    EXPECT_THAT(names, Not(Contains("net: " + linkOf("/proc/self/ns/net")))) << who.uid;
  }
}

TEST_F(ScriptedReader, IsNobodyElseWhereRootAsks) {
  const auto names = born({});
  std::string uid;
  for (const auto& name : names) {
    if (name.starts_with("Uid: ")) uid = name.substr(5, name.find(' ', 5) - 5);
  }
  ASSERT_FALSE(uid.empty());
  EXPECT_GE(std::stoul(uid), READER_UID_BASE);
  EXPECT_LT(std::stoul(uid), READER_UID_BASE + READER_UIDS);
  const std::string four = uid + " " + uid + " " + uid + " " + uid;
  EXPECT_THAT(names, Contains("Uid: " + four));
  EXPECT_THAT(names, Contains("Gid: " + four));
  EXPECT_THAT(names, Contains("Groups:  "));
  EXPECT_THAT(names, Contains("user: " + linkOf("/proc/self/ns/user")));
}

TEST_F(ScriptedReader, IsTheCallerInAUserNamespaceWhereAnOrdinaryUserAsks) {
  const auto names = born(ORDINARY_USER);
  EXPECT_THAT(names, Contains("Uid: 64990 64990 64990 64990"));
  EXPECT_THAT(names, Contains("Gid: 64990 64990 64990 64990"));
  EXPECT_THAT(names, Not(Contains("user: " + linkOf("/proc/self/ns/user"))));
  EXPECT_THAT(names, Contains(StartsWith("user: user:[")));
}

TEST_F(ScriptedReader, IsLostInEveryWay) {
  const std::pair<const char*, const char*> cases[] = {
      {"exit-0", "it exited with 0"},
      {"exit-3", "it exited with 3"},
      {"killed", "killed by signal 9"},
      {"die-midway", "killed by signal 9"},
      {"hang-up-and-stay", "killed by signal 9"},
      {"garbage", "killed by signal 9"},
      {"wrapped-count", "killed by signal 9"},
      {"throw", "was lost (internal)"},
      {"lie", "broke its contract: totals that do not add up"},
      {"long-piece", "broke its contract: a piece of the list of cases"},
      {"twice", "broke its contract: cases behind the end of their list"},
  };
  for (const auto& [script, why] : cases) {
    const CliResult result = run(script);
    EXPECT_EQ(result.code, 1) << script;
    EXPECT_EQ(result.out, LOST) << script;
    EXPECT_THAT(result.err, HasSubstr(why)) << script;
  }
}

TEST_F(ScriptedReader, IsOutOfTimeByItsSignal) {
  const CliResult result = run("out-of-time");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out, replaced(LOST, "reader-lost", "out-of-time"));
}

TEST_F(ScriptedReader, CannotWriteToTheTerminalThroughItsLog) {
  const CliResult result = run("flood-log");
  EXPECT_EQ(result.out, LOST);
  EXPECT_THAT(result.err, HasSubstr(R"(its log: \u{1b}]0;owned\u{7} \u{202e} pretend)"));
  EXPECT_EQ(result.err.find_first_of("\x1b\x07"), std::string::npos);
  EXPECT_LT(result.err.size(), 2000u);
}

TEST_F(ScriptedReader, IsKilledMidway) {
  for (const Caller& caller : {Caller{}, ORDINARY_USER}) {
    CliProcess process(place.cli(), {"read", "junit", place.write("script", "sleep"), "--json"},
                       caller);
    const auto child = process.waitChild();
    ASSERT_TRUE(child);
    ::kill(*child, SIGSEGV);
    const CliResult result = process.wait();
    EXPECT_EQ(result.code, 1);
    EXPECT_EQ(result.out, LOST);
  }
}

TEST_F(ScriptedReader, DiesWithItsCaller) {
  for (const Caller& caller : {Caller{}, ORDINARY_USER}) {
    for (const int signal : {SIGKILL, SIGINT, SIGTERM}) {
      CliProcess process(place.cli(), {"read", "junit", place.write("script", "sleep"), "--json"},
                         caller);
      const auto child = process.waitChild();
      ASSERT_TRUE(child);
      ::kill(process.id(), signal);
      EXPECT_EQ(process.wait().signal, signal);
      EXPECT_TRUE(isGone(*child)) << signal;
    }
  }
}

TEST_F(ScriptedReader, NeedNotBeReachableForItsUid) {
  // As in a build tree under a home that is its owner's alone.
  std::filesystem::permissions(place.path("bin"), std::filesystem::perms(0700));
  EXPECT_EQ(run("honest").code, 0);
}

TEST_F(ScriptedReader, IsMissing) {
  std::filesystem::remove(place.path("bin/cordon-parser"));
  Caller caller;
  caller.environment = {{"PATH", place.path("bin")}};
  const CliResult result = run("honest", caller);
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out, LOST);
  EXPECT_THAT(result.err, HasSubstr("cordon-parser is neither beside this program nor installed"));
}

TEST_F(ScriptedReader, CannotBeExecuted) {
  std::filesystem::resize_file(place.path("bin/cordon-parser"), 0);
  const CliResult result = run("honest");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out, LOST);
  EXPECT_THAT(result.err, HasSubstr("the program cannot be executed"));
}

// ---- a host that forbids ----

void forbidUnshare() {
  const sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), const_cast<sock_filter*>(program)};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    ::_exit(97);
  }
}

TEST_F(ScriptedReader, IsNeverStartedWithLess) {
  Caller user = ORDINARY_USER;
  user.beginning = forbidUnshare;
  const CliResult asUser = run("honest", user);
  EXPECT_EQ(asUser.code, 1);
  EXPECT_EQ(asUser.out, LOST);
  EXPECT_THAT(asUser.err, HasSubstr("this host forbids user namespaces to ordinary users"));
  EXPECT_THAT(asUser.err, HasSubstr("user.max_user_namespaces"));
  Caller root;
  root.beginning = forbidUnshare;
  const CliResult asRoot = run("honest", root);
  EXPECT_EQ(asRoot.code, 1);
  EXPECT_EQ(asRoot.out, LOST);
  EXPECT_THAT(asRoot.err, HasSubstr("no network namespace; root needs CAP_SYS_ADMIN for it"));
}

// ---- what is no file ----

class NoFile : public ScriptedReader {
 protected:
  void expect(const std::string& file, const std::string& status, const std::string& reason,
              const Caller& caller = {}) {
    for (const char* kind : {"junit", "verdicts", "coverage"}) {
      const CliResult result = runCli(place.cli(), {"read", kind, file, "--json"}, caller);
      EXPECT_EQ(result.code, 1) << file;
      EXPECT_EQ(result.err, "") << file;
      const auto json = nlohmann::json::parse(result.out);
      EXPECT_EQ(json["status"], status) << file;
      EXPECT_EQ(json["reason"], reason) << file;
      if (json.contains("answer")) {
        EXPECT_EQ(json["answer"], status == "missing" ? "incomplete" : "contradictory") << file;
      }
    }
  }
};

TEST_F(NoFile, IsMissing) {
  expect(place.path("none"), "missing", "");
  expect(place.write("file", "") + "/below", "missing", "");
  std::filesystem::create_symlink(place.path("none"), place.path("dangling"));
  expect(place.path("dangling"), "missing", "");
}

TEST_F(NoFile, IsNotRegular) {
  ASSERT_EQ(::mkfifo(place.path("fifo").c_str(), 0666), 0);
  expect(place.path("fifo"), "refused", "not-regular");
  expect(place.path("fifo"), "refused", "not-regular", ORDINARY_USER);
  expect(place.path("bin"), "refused", "not-regular");
  expect("/dev/null", "refused", "not-regular");
  expect("/dev/tty", "refused", "not-regular");
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = place.path("socket");
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  expect(path, "refused", "not-regular");
  ::close(socket);
}

TEST_F(NoFile, IsNotReadable) {
  const std::string secret = place.write("secret", "honest");
  std::filesystem::permissions(secret, std::filesystem::perms(0600));
  expect(secret, "refused", "not-readable", ORDINARY_USER);
  std::filesystem::create_directory(place.path("closed"));
  place.write("closed/file", "honest");
  std::filesystem::permissions(place.path("closed"), std::filesystem::perms(0700));
  expect(place.path("closed/file"), "refused", "not-readable", ORDINARY_USER);
  std::filesystem::create_symlink(place.path("loop"), place.path("loop"));
  expect(place.path("loop"), "refused", "not-readable");
  expect(std::string(5000, 'x'), "refused", "not-readable");
}

TEST_F(ScriptedReader, ReadsThroughALink) {
  std::filesystem::create_symlink(place.write("script", "honest"), place.path("link"));
  EXPECT_EQ(runCli(place.cli(), {"read", "junit", place.path("link")}).code, 0);
}

// ---- output ----

TEST_F(ScriptedReader, IsNotGreenWhereNobodyHears) {
  Caller caller;
  caller.closesOutput = true;
  const CliResult result = run("honest", caller);
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "cordon: cannot write: Broken pipe\n");
}

TEST_F(ScriptedReader, IsNotGreenWhereThereIsNoOutput) {
  Caller caller;
  caller.beginning = []() {
    ::close(STDIN_FILENO);
    ::close(STDOUT_FILENO);
  };
  const CliResult result = run("honest", caller);
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "cordon: cannot write: Bad file descriptor\n");
}

template <int LIMIT>
void limitDescriptors() {
  const rlimit limit{LIMIT, LIMIT};
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(97);
}

TEST_F(ScriptedReader, GivesItsObjectWhereDescriptorsAreShort) {
  // One more each time: each step on the way is the one that fails.
  void (*const limits[])() = {
#ifndef CORDON_SANITIZED
      limitDescriptors<4>,  // UBSan's check of a vptr needs a pipe of its own
#endif
      limitDescriptors<5>,  limitDescriptors<6>,  limitDescriptors<7>,  limitDescriptors<8>,
      limitDescriptors<9>,  limitDescriptors<10>, limitDescriptors<11>, limitDescriptors<12>,
      limitDescriptors<13>, limitDescriptors<14>, limitDescriptors<15>, limitDescriptors<16>};
  for (const auto limit : limits) {
    Caller caller;
    caller.beginning = limit;
    const CliResult result = run("honest", caller);
    const auto json = nlohmann::json::parse(result.out);
    EXPECT_EQ(result.code, json["green"] == true ? 0 : 1);
    if (result.code != 0) {
      EXPECT_EQ(json["status"], "refused");
    }
  }
}

int terminalOfTest = -1;

// What the CLI writes where its standard output is a terminal.
std::string onTerminal(const Installation& place, const std::string& file,
                       const std::map<std::string, std::string>& environment) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  EXPECT_EQ(::grantpt(master), 0);
  EXPECT_EQ(::unlockpt(master), 0);
  terminalOfTest = ::open(::ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
  Caller caller;
  caller.environment = environment;
  caller.beginning = []() { ::dup2(terminalOfTest, STDOUT_FILENO); };
  EXPECT_EQ(runCli(place.cli(), {"read", "junit", file}, caller).code, 0);
  char text[4096];
  const ssize_t size = ::read(master, text, sizeof(text));
  ::close(terminalOfTest);
  ::close(master);
  return std::string(text, size < 0 ? 0 : static_cast<std::size_t>(size));
}

TEST_F(ScriptedReader, IsShownInColourOnATerminalAlone) {
  const std::string file = place.write("script", "honest");
  const std::string colour = "\x1b[32mgreen\x1b[0m";
  EXPECT_THAT(onTerminal(place, file, {}), HasSubstr(colour));
  EXPECT_THAT(onTerminal(place, file, {{"NO_COLOR", ""}}), HasSubstr(colour));
  EXPECT_THAT(onTerminal(place, file, {{"NO_COLOR", "1"}}), HasSubstr(": JUnit report: green"));
  EXPECT_THAT(runCli(place.cli(), {"read", "junit", file}).out, HasSubstr("JUnit report: green"));
}

TEST_F(ScriptedReader, SaysUsageWithoutJson) {
  const std::vector<std::vector<std::string>> wrong = {
      {"read", "junit", "-", "--json"},
      {"read", "junit", "--json"},
      {"read", "coverage", "f", "--json", "--window", "5,5"},
      {"read", "junit", "f", "--json", "--\x1b[31m"}};
  for (const auto& words : wrong) {
    const CliResult result = runCli(place.cli(), words);
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, EndsWith("See cordon --help, or --help behind a command.\n"));
    EXPECT_EQ(result.err.find('\x1b'), std::string::npos);
  }
}

// ---- one that says nothing ----

TEST(Conversation, GivesUpOnASilentReader) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  const kj::AutoCloseFd silent(ends[1]);
  Conversation conversation(kj::AutoCloseFd{ends[0]}, 50 * kj::MILLISECONDS);
  const auto answer = conversation.askJunit();
  const auto& none = std::get<NoAnswer>(answer);
  EXPECT_EQ(none.why, NoAnswer::Why::SILENT);
  EXPECT_EQ(none.detail, "deadline");
}

TEST(UnusedUid, IsNobodys) {
  const auto uid = findUnusedUid(5);
  EXPECT_EQ(uid, READER_UID_BASE + 5);
  EXPECT_EQ(findUnusedUid(static_cast<pid_t>(READER_UIDS) + 7), READER_UID_BASE + 7);
  EXPECT_EQ(findUnusedUid(1, "/nowhere"), std::nullopt);
}

TEST(UnusedUid, PassesOverWhatAProcessHas) {
  const pid_t holder = ::fork();
  ASSERT_GE(holder, 0);
  if (holder == 0) {
    if (::setresuid(READER_UID_BASE + 20, READER_UID_BASE + 20, READER_UID_BASE + 20) != 0) {
      ::_exit(1);
    }
    for (;;) ::pause();
  }
  while (!statusOf(holder, "Uid").starts_with(std::to_string(READER_UID_BASE + 20))) ::usleep(1000);
  EXPECT_EQ(findUnusedUid(20), READER_UID_BASE + 21);
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
}

TEST(UnusedUid, IsFoundThoughAProcessEndsBetweenOpenAndRead) {
  // Its status opens and does not read: so does a folder, at any time.
  const Installation place(CORDON_CLI_BINARY, "");
  std::filesystem::create_directories(place.path("proc/123/status"));
  EXPECT_EQ(findUnusedUid(40, place.path("proc")), READER_UID_BASE + 40);
}

}  // namespace
}  // namespace cordon::cli::testing
