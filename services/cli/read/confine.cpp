#include "services/cli/read/confine.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cordon::cli {
namespace {

constexpr int RPC_FD = 3;
constexpr int FILE_FD = 4;
constexpr int REPORT_FD = 5;
constexpr int BINARY_FD = 6;
constexpr int FIRST_OTHER_FD = 7;
constexpr int CANNOT_EXECUTE = 127;

class Child {
 public:
  explicit Child(const ReaderPlan& readerPlan) : plan(readerPlan), report(readerPlan.reportFd) {}

  [[noreturn]] void run() {
    openBinary();
    dieWithCaller();
    placeDescriptors();
    makeNamespaces();
    mapIdentity();
    dropGroups();
    dropBounding();
    changeIdentity();
    dropCapabilities();
    forbidNewPrivileges();
    // Once more: the kernel forgets it when credentials change.
    dieWithCaller();
    resetSignals();
    execute();
  }

 private:
  void require(bool holds, StartStep step) const {
    if (holds) return;
    const StartFailure failure{step, errno};
    // Who waits for it learns the rest from the exit code.
    [[maybe_unused]] const auto written = ::write(report, &failure, sizeof(failure));
    ::_exit(CANNOT_EXECUTE);
  }

  // While we may still walk there: the parser's uid need not be able to reach a build tree.
  void openBinary() {
    binary = ::open(plan.binary.c_str(), O_PATH | O_CLOEXEC);
    require(binary >= 0, StartStep::OPEN_BINARY);
  }

  void dieWithCaller() const {
    require(::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, StartStep::DIE_WITH_CALLER);
    // It may have died before.
    errno = ESRCH;
    require(::getppid() == plan.caller, StartStep::DIE_WITH_CALLER);
  }

  // Out of the way first, so that no target is a source that is needed yet.
  void placeDescriptors() {
    constexpr auto STEP = StartStep::PLACE_DESCRIPTORS;
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    struct Move {
      int from;
      int to;
    };
    std::array<Move, 7> moves = {{{report, REPORT_FD},
                                  {binary, BINARY_FD},
                                  {null, STDIN_FILENO},
                                  {null, STDOUT_FILENO},
                                  {plan.logFd, STDERR_FILENO},
                                  {plan.rpcFd, RPC_FD},
                                  {plan.fileFd, FILE_FD}}};
    for (Move& move : moves) {
      move.from = ::fcntl(move.from, F_DUPFD_CLOEXEC, FIRST_OTHER_FD);
      require(move.from >= 0, STEP);
    }
    report = moves[0].from;
    for (const Move& move : moves) {
      const bool isOurs = move.to == REPORT_FD || move.to == BINARY_FD;
      require(::dup3(move.from, move.to, isOurs ? O_CLOEXEC : 0) >= 0, STEP);
    }
    report = REPORT_FD;
    binary = BINARY_FD;
    require(::close_range(FIRST_OTHER_FD, ~0U, 0) == 0, STEP);
    require(::chdir("/") == 0, STEP);
    // No terminal to push input into; Ctrl-C reaches the caller, and with it us.
    require(::setsid() >= 0, STEP);
  }

  [[nodiscard]] bool isRoot() const { return plan.uid != 0; }

  void makeNamespaces() const {
    // Both at once: the right to the second comes from the first.
    const int flags = isRoot() ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET;
    require(::unshare(flags) == 0, StartStep::MAKE_NAMESPACES);
  }

  void writeFile(const char* path, const std::string& text) const {
    const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
    require(fd >= 0, StartStep::MAP_IDENTITY);
    require(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()),
            StartStep::MAP_IDENTITY);
    ::close(fd);
  }

  // The caller is itself in the new namespace; everybody else is nobody there.
  void mapIdentity() const {
    if (isRoot()) return;
    // Before we are unmapped: afterwards both read 65534.
    writeFile("/proc/self/setgroups", "deny");
    writeFile("/proc/self/uid_map", identity(callerUid));
    writeFile("/proc/self/gid_map", identity(callerGid));
  }

  static std::string identity(std::uint32_t id) {
    const std::string number = std::to_string(id);
    return number + " " + number + " 1";
  }

  void dropGroups() const {
    // A user namespace of an ordinary user's cannot: user_namespaces(7), "setgroups".
    if (isRoot()) require(::setgroups(0, nullptr) == 0, StartStep::DROP_GROUPS);
  }

  // Needs CAP_SETPCAP, which goes with the uid.
  void dropBounding() const {
    for (unsigned long capability = 0; ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0;
         ++capability) {
      require(::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0, StartStep::DROP_BOUNDING);
    }
  }

  void changeIdentity() const {
    if (!isRoot()) return;
    require(::setresgid(plan.uid, plan.uid, plan.uid) == 0, StartStep::CHANGE_IDENTITY);
    require(::setresuid(plan.uid, plan.uid, plan.uid) == 0, StartStep::CHANGE_IDENTITY);
  }

  void dropCapabilities() const {
    constexpr auto STEP = StartStep::DROP_CAPABILITIES;
    require(::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0, STEP);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    const std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
    require(::syscall(SYS_capset, &header, none.data()) == 0, STEP);
  }

  void forbidNewPrivileges() const {
    require(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, StartStep::FORBID_NEW_PRIVILEGES);
  }

  // What is ignored stays so over exec, and what is blocked too.
  static void resetSignals() {
    for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
  }

  [[noreturn]] void execute() {
    std::string words[] = {plan.binary,
                           "--role",
                           "read",
                           "--rpc-fd",
                           std::to_string(RPC_FD),
                           "--file-fd",
                           std::to_string(FILE_FD)};
    std::array<char*, std::size(words) + 1> arguments{};
    for (std::size_t i = 0; i < std::size(words); ++i) arguments[i] = words[i].data();
    char* const noEnvironment[] = {nullptr};
    // By its name where that can be reached, for the sake of ps; else by the open file.
    ::execve(plan.binary.c_str(), arguments.data(), noEnvironment);
    if (errno == EACCES) {
      ::execveat(binary, "", arguments.data(), noEnvironment, AT_EMPTY_PATH);
    }
    require(false, StartStep::EXECUTE);
    ::_exit(CANNOT_EXECUTE);
  }

  const ReaderPlan& plan;
  int report;
  int binary = -1;
  // Before we are unmapped: afterwards both read 65534.
  uid_t callerUid = ::geteuid();
  gid_t callerGid = ::getegid();
};

// The knobs of kernels that keep user namespaces from ordinary users, each with the value that
// does.
struct Knob {
  const char* path;
  const char* name;
  char forbidding;
};
constexpr std::array<Knob, 3> KNOBS = {{
    {"/proc/sys/user/max_user_namespaces", "user.max_user_namespaces", '0'},
    {"/proc/sys/kernel/unprivileged_userns_clone", "kernel.unprivileged_userns_clone", '0'},
    {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
     "kernel.apparmor_restrict_unprivileged_userns", '1'},
}};

std::string namespaceRemedy() {
  std::string forbidding;
  for (const Knob& knob : KNOBS) {
    const int fd = ::open(knob.path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    char value[2] = {};
    const ssize_t size = ::read(fd, value, sizeof(value));
    ::close(fd);
    const bool isThatAlone = size == 1 || (size == 2 && value[1] == '\n');
    if (!isThatAlone || value[0] != knob.forbidding) continue;
    if (!forbidding.empty()) forbidding += ", ";
    forbidding += std::string(knob.name) + " = " + knob.forbidding;
  }
  if (!forbidding.empty()) {
    return "this host forbids user namespaces to ordinary users (sysctl " + forbidding +
           "); allow them, or run as root";
  }
  return "this host forbids user namespaces to ordinary users; look at sysctl "
         "user.max_user_namespaces, kernel.unprivileged_userns_clone and "
         "kernel.apparmor_restrict_unprivileged_userns, or at a container's seccomp profile, or "
         "run as root";
}

std::string meaningOf(StartStep step) {
  switch (step) {
    case StartStep::MAKE_PIPES:
      return "no descriptors for it; raise the limit on open files";
    case StartStep::UNUSED_UID:
      return "no uid of those set aside for it is unused, or /proc cannot be read";
    case StartStep::FORK:
      return "no process for it";
    case StartStep::OPEN_BINARY:
    case StartStep::EXECUTE:
      return "the program cannot be executed; install cordon-parser beside cordon";
    case StartStep::DIE_WITH_CALLER:
      return "it would outlive us";
    case StartStep::PLACE_DESCRIPTORS:
      return "its descriptors cannot be put in place";
    case StartStep::MAKE_NAMESPACES:
      return ::geteuid() == 0 ? "no network namespace; root needs CAP_SYS_ADMIN for it"
                              : namespaceRemedy();
    case StartStep::MAP_IDENTITY:
      return ::geteuid() == 0 ? "no identity for it" : namespaceRemedy();
    case StartStep::DROP_GROUPS:
      return "groups stay; root needs CAP_SETGID";
    case StartStep::DROP_BOUNDING:
      return "capabilities stay; root needs CAP_SETPCAP";
    case StartStep::CHANGE_IDENTITY:
      return "root needs CAP_SETUID and CAP_SETGID, and a user namespace must map uids from "
             "1879375872 on";
    case StartStep::DROP_CAPABILITIES:
    case StartStep::FORBID_NEW_PRIVILEGES:
      return "privileges stay";
  }
  return "unknown step";
}

}  // namespace

std::string describe(const StartFailure& failure) {
  std::string text = "the sandboxed reader cannot be started: " + meaningOf(failure.step);
  if (failure.error != 0) {
    text += " (errno " + std::to_string(failure.error) + ", ";
    text += ::strerrordesc_np(failure.error) != nullptr ? ::strerrordesc_np(failure.error) : "?";
    text += ')';
  }
  return text;
}

void becomeReader(const ReaderPlan& plan) {
  Child(plan).run();
}

}  // namespace cordon::cli
