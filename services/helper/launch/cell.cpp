#include "services/helper/launch/cell.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <type_traits>
#include <unistd.h>
#include <utility>

#include <climits>

#include "services/helper/launch/error.h"

namespace cordon::launch {
namespace {

// Numbers above every one that a program is given, so that none is overwritten before it is moved.
constexpr int HIGH_FD = 200;

// What a process of the cell says when a step fails; our own code writes it, before the program
// runs.
struct Report {
  Code code = Code::STEP_FAILED;
  int error = 0;
  std::array<char, 64> step{};
  std::array<char, 512> subject{};
  std::array<char, 256> reason{};
};
static_assert(std::is_trivially_copyable_v<Report> && sizeof(Report) <= PIPE_BUF);

template <std::size_t SIZE>
void copyText(std::array<char, SIZE>& target, const std::string& text) {
  std::size_t length = std::min(text.size(), SIZE - 1);
  std::memcpy(target.data(), text.data(), length);
}

void sendReport(int fd, const LaunchError& error) {
  Report report;
  report.code = error.code;
  report.error = error.error;
  copyText(report.step, error.step);
  copyText(report.subject, error.subject);
  copyText(report.reason, error.reason);
  [[maybe_unused]] ssize_t ignored = write(fd, &report, sizeof report);
}

struct PipeEnds {
  UniqueFd reader;
  UniqueFd writer;
};

PipeEnds makePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) failStep("make-pipe", "a cell's report");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// The steps of pid 1, in order.

void leaveSession() {
  // No controlling terminal: a lost program could otherwise type into the operator's (TIOCSTI).
  if (setsid() < 0) failStep("leave-session", "setsid");
  // Root's session keyring would be inherited by whoever we become.
  if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) < 0 && errno != ENOSYS) {
    failStep("leave-session", "keyctl");
  }
}

void nameHost() {
  // The host's name is nobody's business in a cell.
  if (sethostname("cell", 4) != 0 || setdomainname("", 0) != 0) failStep("name-host", "cell");
}

void limitResources() {
  auto limit = [](__rlimit_resource resource, rlim_t value, const char* subject) {
    rlimit both{value, value};
    if (setrlimit(resource, &both) != 0) failStep("limit-resources", subject);
  };
  // A core would be a copy of guest memory on the host's disk.
  limit(RLIMIT_CORE, 0, "core");
  limit(RLIMIT_NOFILE, 1024, "nofile");
  limit(RLIMIT_MSGQUEUE, 0, "msgqueue");
}

void dropIdentity(const Identity& identity) {
  // The bounding set first: to change it takes CAP_SETPCAP, which goes with the uid.
  for (unsigned long capability = 0;; ++capability) {
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0) continue;
    if (errno == EINVAL && capability > 0) break;  // past the last one this kernel knows
    failStep("drop-identity", "bounding set");
  }
  if (setgroups(0, nullptr) != 0) failStep("drop-identity", "setgroups");
  if (setresgid(identity.gid, identity.gid, identity.gid) != 0)
    failStep("drop-identity", "setresgid");
  if (setresuid(identity.uid, identity.uid, identity.uid) != 0)
    failStep("drop-identity", "setresuid");
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> none{};
  if (syscall(SYS_capset, &header, none.data()) != 0) failStep("drop-identity", "capset");
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
    failStep("drop-identity", "ambient set");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) failStep("drop-identity", "no_new_privs");
}

void dieWithLauncher(int reportFd) {
  // After the change of uid, which clears it.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) failStep("die-with-launcher", "pdeathsig");
  // It may have died just before: then nobody holds the other end.
  pollfd reader{reportFd, 0, 0};
  if (poll(&reader, 1, 0) < 0 || (reader.revents & POLLERR) != 0)
    failStep("die-with-launcher", "launcher");
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) failStep("die-with-launcher", "dumpable");
}

// The steps of pid 2, in order.

void restoreSignals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal == SIGKILL || signal == SIGSTOP) continue;
    std::signal(signal, SIG_DFL);  // the two numbers that glibc keeps for itself are refused
  }
  sigset_t none;
  sigemptyset(&none);
  if (sigprocmask(SIG_SETMASK, &none, nullptr) != 0) failStep("restore-signals", "mask");
}

// Returns where the report pipe is now.
int placeDescriptors(CellPlan& plan, int reportFd) {
  auto high = [](int fd) {
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (moved < 0) failStep("place-descriptors", "move");
    return moved;
  };
  int report = high(reportFd);
  int output = high(plan.output.get());
  std::vector<std::pair<int, int>> moves;
  int last = STDERR_FILENO;
  for (const Inherited& each : plan.descriptors) {
    moves.emplace_back(high(each.fd.get()), each.number);
    last = std::max(last, each.number);
  }
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0) failStep("place-descriptors", "/dev/null");
  moves.emplace_back(high(null), STDIN_FILENO);
  moves.emplace_back(output, STDOUT_FILENO);
  moves.emplace_back(output, STDERR_FILENO);
  for (auto [from, to] : moves) {
    if (dup2(from, to) < 0) failStep("place-descriptors", std::to_string(to));
  }
  // All others close at exec, known to us or not; the report pipe's closing is the launcher's sign
  // of success.
  std::vector<int> keep;
  for (const Inherited& each : plan.descriptors) keep.push_back(each.number);
  for (int fd = STDERR_FILENO + 1; fd <= last; ++fd) {
    if (std::find(keep.begin(), keep.end(), fd) == keep.end() &&
        close_range(static_cast<unsigned>(fd), static_cast<unsigned>(fd), CLOSE_RANGE_CLOEXEC) !=
            0) {
      failStep("place-descriptors", "close_range");
    }
  }
  if (close_range(static_cast<unsigned>(last) + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
    failStep("place-descriptors", "close_range");
  }
  return report;
}

void execute(const CellPlan& plan) {
  std::vector<char*> argv;
  for (const std::string& argument : plan.argv) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::array<char*, 1> environment{nullptr};
  execve(argv[0], argv.data(), environment.data());
  failStep("execute", plan.argv[0]);
}

// Pid 1 for the rest of its life.
[[noreturn]] void attend(pid_t program, UniqueFd status) {
  // It keeps nothing of what the program was given.
  int kept = fcntl(status.get(), F_DUPFD_CLOEXEC, HIGH_FD);
  dup2(kept, 0);
  close_range(1, ~0U, 0);
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  sigaddset(&awaited, SIGTERM);
  for (;;) {
    int signal = 0;
    if (sigwait(&awaited, &signal) != 0) _exit(1);
    if (signal == SIGTERM) ::kill(program, SIGTERM);
    for (;;) {
      int ended = 0;
      pid_t child = waitpid(-1, &ended, WNOHANG);
      if (child <= 0) break;
      if (child != program) continue;
      [[maybe_unused]] ssize_t ignored = write(0, &ended, sizeof ended);
      _exit(0);
    }
  }
}

[[noreturn]] void runCell(CellPlan& plan, UniqueFd report, UniqueFd status) {
  try {
    leaveSession();
    nameHost();
    enterView(plan.view);
    limitResources();
    dropIdentity(plan.identity);
    dieWithLauncher(report.get());
    umask(0077);
    pid_t program = fork();
    if (program < 0) failStep("fork", plan.name);
    if (program > 0) {
      report.reset();
      attend(program, std::move(status));
    }
    // Its descendants are all the cell has; they end with pid 1.
    status.reset();
    restoreSignals();
    report = UniqueFd(placeDescriptors(plan, report.get()));
    execute(plan);
  } catch (const LaunchError& error) {
    sendReport(report.get(), error);
  } catch (const std::exception& error) {
    sendReport(report.get(),
               LaunchError(Code::STEP_FAILED, "run-cell", plan.name, 0, error.what()));
  }
  _exit(125);
}

void blockSignalsOfAttendant() {
  // Blocked from before the cell exists, so that no SIGTERM is lost: pid 1 of a namespace ignores
  // what it does not handle.
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  sigaddset(&blocked, SIGTERM);
  if (sigprocmask(SIG_BLOCK, &blocked, nullptr) != 0) failStep("block-signals", "mask");
}

}  // namespace

bool Ending::exitedWith(int code) const {
  return WIFEXITED(waitStatus) && WEXITSTATUS(waitStatus) == code;
}

std::string Ending::describe() const {
  if (WIFEXITED(waitStatus)) return "exit " + std::to_string(WEXITSTATUS(waitStatus));
  const char* word = sigabbrev_np(WTERMSIG(waitStatus));
  return "signal " + std::to_string(WTERMSIG(waitStatus)) +
         (word != nullptr ? std::string(" (SIG") + word + ")" : "");
}

Cell Cell::start(CellPlan plan) {
  blockSignalsOfAttendant();
  PipeEnds reports = makePipe();
  PipeEnds endings = makePipe();

  Cell cell;
  cell.ownName = plan.name;
  int pidFd = -1;
  clone_args arguments{};
  arguments.flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET |
                    CLONE_NEWCGROUP | CLONE_PIDFD;
  arguments.pidfd = reinterpret_cast<std::uint64_t>(&pidFd);
  arguments.exit_signal = SIGCHLD;
  long pid = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid < 0) failStep("make-namespaces", plan.name);
  if (pid == 0) {
    reports.reader.reset();
    endings.reader.reset();
    runCell(plan, std::move(reports.writer), std::move(endings.writer));
  }
  cell.pid = static_cast<pid_t>(pid);
  cell.process = UniqueFd(pidFd);
  cell.status = std::move(endings.reader);
  reports.writer.reset();
  endings.writer.reset();

  Report report;
  ssize_t size = 0;
  do {
    size = read(reports.reader.get(), &report, sizeof report);
  } while (size < 0 && errno == EINTR);
  if (size < 0) failStep("read-report", plan.name);
  if (size == sizeof report) {
    throw LaunchError(report.code, std::string(plan.name) + "/" + report.step.data(),
                      report.subject.data(), report.error, report.reason.data());
  }
  return cell;
}

Cell::Cell(Cell&& other) noexcept
    : ownName(std::move(other.ownName)),
      pid(std::exchange(other.pid, -1)),
      process(std::move(other.process)),
      status(std::move(other.status)) {}

Cell& Cell::operator=(Cell&& other) noexcept {
  if (this != &other) {
    end();
    ownName = std::move(other.ownName);
    pid = std::exchange(other.pid, -1);
    process = std::move(other.process);
    status = std::move(other.status);
  }
  return *this;
}

Cell::~Cell() {
  end();
}

void Cell::end() noexcept {
  if (pid < 0) return;
  kill();
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid = -1;
}

void Cell::terminate() const {
  syscall(SYS_pidfd_send_signal, process.get(), SIGTERM, nullptr, 0);
}

void Cell::kill() const {
  syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
}

Ending Cell::reap() {
  Ending own;
  while (waitpid(pid, &own.waitStatus, 0) < 0) {
    if (errno != EINTR) failStep("reap", ownName);
  }
  pid = -1;
  Ending program;
  // Where pid 1 was killed its own end stands for the program's: the kernel killed that too.
  if (read(status.get(), &program.waitStatus, sizeof program.waitStatus) ==
      sizeof program.waitStatus)
    return program;
  return own;
}

}  // namespace cordon::launch
