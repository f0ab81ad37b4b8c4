#include "services/guest/spawn.h"

#include <cerrno>
#include <fcntl.h>
#include <signal.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cordon::guest {
namespace {

// Everything the child needs, made before the fork: another thread may hold the lock of malloc at
// that moment, so the child only makes system calls.
struct Prepared {
  std::vector<char*> argv;
  std::vector<std::string> envText;
  std::vector<char*> envp;
  std::vector<std::string> candidates;
  std::string home;
  const Command* command = nullptr;
  const Inherited* inherited = nullptr;
  int in = -1;
  int out = -1;
  int err = -1;
  int cgroupProcs = -1;
  int reports = -1;
};

// Where execvp would look. A name with a slash is a path; an empty name is found nowhere.
std::vector<std::string> candidatesFor(const Command& command) {
  const std::string& name = command.argv.front();
  if (name.empty()) return {};
  if (name.find('/') != std::string::npos) return {name};
  auto entry = command.env.find("PATH");
  std::string_view path = entry == command.env.end() ? std::string_view{} : entry->second;
  std::vector<std::string> found;
  for (;;) {
    std::size_t end = path.find(':');
    std::string directory(path.substr(0, end));
    // POSIX: an empty element is the working directory.
    found.push_back((directory.empty() ? "." : directory) + "/" + name);
    if (end == std::string_view::npos) return found;
    path.remove_prefix(end + 1);
  }
}

Prepared prepare(const Command& command, const Inherited& inherited) {
  Prepared prepared;
  prepared.command = &command;
  prepared.inherited = &inherited;
  for (const std::string& argument : command.argv) {
    prepared.argv.push_back(const_cast<char*>(argument.c_str()));
  }
  prepared.argv.push_back(nullptr);
  for (const auto& [name, value] : command.env) {
    std::string& entry = prepared.envText.emplace_back(name);
    entry += '=';
    entry += value;
  }
  for (std::string& entry : prepared.envText) prepared.envp.push_back(entry.data());
  prepared.envp.push_back(nullptr);
  prepared.candidates = candidatesFor(command);
  prepared.home = command.actor.home();
  return prepared;
}

// ---- in the child: system calls only ----

void report(const Prepared& prepared, SpawnStep step, int error) {
  SpawnReport message{step, error};
  // A pipe takes so few bytes whole; if the agent is gone no one is left to tell.
  (void)!::write(prepared.reports, &message, sizeof message);
}

[[noreturn]] void fail(const Prepared& prepared, SpawnStep step, int error) {
  report(prepared, step, error);
  ::_exit(127);
}

void joinCgroup(const Prepared& prepared) {
  if (prepared.cgroupProcs < 0) return;
  if (::write(prepared.cgroupProcs, "0", 1) != 1) report(prepared, SpawnStep::CGROUP, errno);
}

// Early: a child that hangs before its exec (a working directory on a dead server) must not hold
// another command's pipes open.
void placeDescriptors(Prepared& prepared) {
  // All of them are above 2, so none is overwritten before it is placed.
  if (::dup2(prepared.in, 0) < 0 || ::dup2(prepared.out, 1) < 0 || ::dup2(prepared.err, 2) < 0) {
    fail(prepared, SpawnStep::SETUP, errno);
  }
  if (prepared.reports != 3) {
    if (::dup3(prepared.reports, 3, O_CLOEXEC) < 0) fail(prepared, SpawnStep::SETUP, errno);
    prepared.reports = 3;
  }
  // Where the kernel lacks the call, close-on-exec does the same later.
  ::syscall(SYS_close_range, 4, ~0U, 0);
}

void resetProcess(const Prepared& prepared) {
  ::umask(022);
  ::setrlimit(RLIMIT_NOFILE, &prepared.inherited->openFiles);
  if (const std::string& score = prepared.inherited->oomScore; !score.empty()) {
    int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file >= 0) (void)!::write(file, score.data(), score.size());
  }
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::setpgid(0, 0) != 0) fail(prepared, SpawnStep::SETUP, errno);
}

void becomeUser(const Prepared& prepared) {
  const Actor& actor = prepared.command->actor;
  if (!actor.change) return;
  const User& user = *actor.user;
  if (::syscall(SYS_setgroups, user.groups.size(), user.groups.data()) != 0 ||
      ::syscall(SYS_setresgid, user.gid, user.gid, user.gid) != 0 ||
      ::syscall(SYS_setresuid, user.uid, user.uid, user.uid) != 0) {
    fail(prepared, SpawnStep::IDENTITY, errno);
  }
}

void enterDirectory(const Prepared& prepared) {
  if (::chdir(prepared.home.c_str()) != 0 && ::chdir("/") != 0) {
    fail(prepared, SpawnStep::CWD, errno);
  }
  const auto& cwd = prepared.command->cwd;
  if (cwd && ::chdir(cwd->c_str()) != 0) fail(prepared, SpawnStep::CWD, errno);
}

[[noreturn]] void execute(const Prepared& prepared) {
  int error = ENOENT;
  for (const std::string& candidate : prepared.candidates) {
    ::execve(candidate.c_str(), prepared.argv.data(), prepared.envp.data());
    if (errno == ENOENT || errno == ENOTDIR) continue;
    error = errno;
    if (error != EACCES) break;
  }
  fail(prepared, SpawnStep::EXEC, error);
}

[[noreturn]] void runChild(Prepared& prepared) {
  joinCgroup(prepared);
  placeDescriptors(prepared);
  resetProcess(prepared);
  becomeUser(prepared);
  enterDirectory(prepared);
  execute(prepared);
}

}  // namespace

int spawn(const Command& command, const Inherited& inherited, ChildEnds ends, const Fd& cgroupProcs,
          Child& child) {
  int reportEnds[2];
  if (::pipe2(reportEnds, O_CLOEXEC) != 0) return errno;
  child.reports = Fd(reportEnds[0]);
  Fd childReports(reportEnds[1]);
  Prepared prepared = prepare(command, inherited);
  prepared.in = ends.in.get();
  prepared.out = ends.out.get();
  prepared.err = ends.err.get();
  prepared.cgroupProcs = cgroupProcs.get();
  prepared.reports = childReports.get();
  child.pid = ::fork();
  if (child.pid < 0) return errno;
  if (child.pid == 0) runChild(prepared);
  return 0;
}

}  // namespace cordon::guest
