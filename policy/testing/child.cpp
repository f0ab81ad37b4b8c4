#include "policy/testing/child.h"

#include <csignal>
#include <linux/seccomp.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cordon::policy::testing {
namespace {

constexpr uid_t NOBODY = 64999;
constexpr suseconds_t BLOCKED_AFTER_US = 300000;
constexpr int CANNOT_PREPARE = 98;

void prepare(std::optional<std::span<const sock_filter>> filter) {
  const rlimit none{0, 0};
  const itimerval alarm{{0, 0}, {0, BLOCKED_AFTER_US}};
  const bool isRoot = geteuid() == 0;
  if (isRoot && (syscall(SYS_setresgid, NOBODY, NOBODY, NOBODY) != 0 ||
                 syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY) != 0)) {
    _exit(CANNOT_PREPARE);
  }
  if (setrlimit(RLIMIT_CORE, &none) != 0 || setitimer(ITIMER_REAL, &alarm, nullptr) != 0 ||
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    _exit(CANNOT_PREPARE);
  }
  if (filter) {
    const sock_fprog program{static_cast<unsigned short>(filter->size()),
                             const_cast<sock_filter*>(filter->data())};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
      _exit(CANNOT_PREPARE);
    }
  }
}

}  // namespace

int runChild(std::optional<std::span<const sock_filter>> filter,
             const std::function<void()>& attempt) {
  // The child shares this process's memory until it ends, and this process waits for it: thousands
  // of children stay cheap even under AddressSanitizer, whose shadow makes fork slow. Limits,
  // identity and filters are the child's own.
  // NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): it never returns
  const pid_t child = vfork();
  if (child < 0) {
    throw std::runtime_error("fork");
  }
  if (child == 0) {
    prepare(filter);
    attempt();
    syscall(SYS_exit_group, 0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) {
    throw std::runtime_error("waitpid");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_PREPARE) {
    throw std::runtime_error("the child could not load its filter");
  }
  return status;
}

int runCall(std::optional<std::span<const sock_filter>> filter, long number,
            const compiler::Arguments& a) {
  return runChild(filter, [&] { syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]); });
}

bool diedOfPolicy(int status) {
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
}

std::string describeStatus(int status) {
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                             : "exit " + std::to_string(WEXITSTATUS(status));
}

}  // namespace cordon::policy::testing
