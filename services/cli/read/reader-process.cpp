#include "services/cli/read/reader-process.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>

#include "services/cli/read/reader-identity.h"

namespace cordon::cli {
namespace {

constexpr const char* INSTALLED_PARSER = "/usr/libexec/cordon/cordon-parser";
constexpr int GRACE_MS = 2000;
constexpr std::size_t LOG_BYTES = 16384;

// Takes what open calls give.
struct Pair {
  kj::AutoCloseFd ours;
  kj::AutoCloseFd theirs;
};

bool makePipe(Pair& pair, int flags) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | flags) != 0) return false;
  pair.ours = kj::AutoCloseFd(ends[0]);
  pair.theirs = kj::AutoCloseFd(ends[1]);
  return true;
}

bool makeSocket(Pair& pair) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return false;
  pair.ours = kj::AutoCloseFd(ends[0]);
  pair.theirs = kj::AutoCloseFd(ends[1]);
  return true;
}

// Nothing once it executes: exec closed the other end.
std::variant<std::monostate, StartFailure> awaitExec(int reportEnd) {
  StartFailure failure;
  ssize_t size = 0;
  do {
    size = ::read(reportEnd, &failure, sizeof(failure));
  } while (size < 0 && errno == EINTR);
  if (size == 0) return std::monostate{};
  if (size != sizeof(failure)) return StartFailure{StartStep::EXECUTE, EIO};
  return failure;
}

void reap(pid_t pid, int& status, rusage& used) {
  while (::wait4(pid, &status, 0, &used) < 0 && errno == EINTR) {
  }
}

}  // namespace

std::string findParser() {
  char own[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", own, sizeof(own));
  if (size > 0 && static_cast<std::size_t>(size) < sizeof(own)) {
    const std::string path(own, static_cast<std::size_t>(size));
    std::string beside = path.substr(0, path.rfind('/') + 1) + "cordon-parser";
    if (::access(beside.c_str(), X_OK) == 0) return beside;
  }
  return ::access(INSTALLED_PARSER, X_OK) == 0 ? INSTALLED_PARSER : "";
}

std::variant<std::unique_ptr<ReaderProcess>, StartFailure> ReaderProcess::start(
    const std::string& binary, kj::AutoCloseFd file) {
  Pair rpc;
  Pair log;
  Pair report;
  // A full pipe loses lines of the log, and never stops who writes them.
  if (!makeSocket(rpc) || !makePipe(log, O_NONBLOCK) || !makePipe(report, 0)) {
    return StartFailure{StartStep::MAKE_PIPES, errno};
  }
  ReaderPlan plan{.binary = binary,
                  .rpcFd = rpc.theirs,
                  .fileFd = file,
                  .logFd = log.theirs,
                  .reportFd = report.theirs,
                  .caller = ::getpid(),
                  .uid = 0};
  if (::geteuid() == 0) {
    const auto uid = findUnusedUid(plan.caller);
    if (!uid) return StartFailure{StartStep::UNUSED_UID, 0};
    plan.uid = *uid;
  }
  const pid_t pid = ::fork();
  if (pid < 0) return StartFailure{StartStep::FORK, errno};
  if (pid == 0) becomeReader(plan);
  std::unique_ptr<ReaderProcess> process(
      new ReaderProcess(pid, kj::mv(rpc.ours), kj::mv(log.ours)));
  report.theirs = nullptr;
  auto executed = awaitExec(report.ours);
  if (const auto* failure = std::get_if<StartFailure>(&executed)) return *failure;
  return process;
}

ReaderProcess::~ReaderProcess() {
  if (!isReaped) {
    ::kill(pid, SIGKILL);
    end();
  }
}

ReaderEnd ReaderProcess::end() {
  socket = nullptr;
  // Not by <sys/pidfd.h>: glibc 2.36 declares it for C alone.
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  const kj::AutoCloseFd watched = handle < 0 ? kj::AutoCloseFd() : kj::AutoCloseFd(handle);
  pollfd poller{.fd = handle, .events = POLLIN, .revents = 0};
  // Without a pidfd there is no waiting: it has nothing left to do.
  if (handle < 0 || ::poll(&poller, 1, GRACE_MS) <= 0) ::kill(pid, SIGKILL);
  int status = 0;
  rusage used{};
  reap(pid, status, used);
  isReaped = true;
  ReaderEnd result;
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
    result.outOfTime = result.signal == SIGXCPU;
  } else {
    result.code = WEXITSTATUS(status);
  }
  return result;
}

std::string ReaderProcess::log() {
  std::string text(LOG_BYTES, '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t size = ::read(logPipe, text.data() + filled, text.size() - filled);
    if (size <= 0) break;
    filled += static_cast<std::size_t>(size);
  }
  text.resize(filled);
  return text;
}

}  // namespace cordon::cli
