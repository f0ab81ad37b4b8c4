// Runs inside a cell and says what it finds, a line "fact NAME=VALUE" each; tests compare.
#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <net/if.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace {

void fact(const char* name, const std::string& value) {
  std::string line = std::string("fact ") + name + "=" + value + "\n";
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) _exit(99);
}

std::string outcome(long result) {
  return result >= 0 ? "done" : strerrorname_np(errno);
}

std::string entriesOf(const char* path) {
  DIR* folder = opendir(path);
  if (folder == nullptr) return strerrorname_np(errno);
  std::vector<std::string> names;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(folder);
  std::sort(names.begin(), names.end());
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : ",") + name;
  return joined;
}

// Where it succeeds (outside a cell), the traced process goes on as before.
std::string traceOutcome(pid_t pid) {
  long result = ptrace(PTRACE_SEIZE, pid, nullptr, nullptr);
  std::string text = outcome(result);
  if (result == 0) ptrace(PTRACE_DETACH, pid, nullptr, nullptr);
  return text;
}

// Whether a file could be made in `folder`, without making one that stays.
std::string makeOutcome(const char* folder) {
  return outcome(open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
}

void identityFacts() {
  uid_t ruid, euid, suid;
  gid_t rgid, egid, sgid;
  getresuid(&ruid, &euid, &suid);
  getresgid(&rgid, &egid, &sgid);
  fact("uids", std::to_string(ruid) + "," + std::to_string(euid) + "," + std::to_string(suid));
  fact("gids", std::to_string(rgid) + "," + std::to_string(egid) + "," + std::to_string(sgid));
  fact("groups", std::to_string(getgroups(0, nullptr)));
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  syscall(SYS_capget, &header, sets.data());
  fact("capabilities", std::to_string(sets[0].effective | sets[0].permitted | sets[0].inheritable |
                                      sets[1].effective | sets[1].permitted | sets[1].inheritable));
  int bounding = 0;
  int ambient = 0;
  for (unsigned long capability = 0; capability < 64; ++capability) {
    bounding += prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1 ? 1 : 0;
    ambient += prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, capability, 0, 0) == 1 ? 1 : 0;
  }
  fact("bounding", std::to_string(bounding));
  fact("ambient", std::to_string(ambient));
  fact("no_new_privs", std::to_string(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)));
  fact("become-root", outcome(setresuid(0, 0, 0)));
}

void namespaceFacts() {
  fact("pid", std::to_string(getpid()));
  fact("parent", std::to_string(getppid()));
  std::array<char, 256> host{};
  gethostname(host.data(), host.size());
  fact("host", host.data());
  std::string names;
  struct if_nameindex* interfaces = if_nameindex();
  for (struct if_nameindex* each = interfaces; each != nullptr && each->if_name != nullptr;
       ++each) {
    names += (names.empty() ? "" : ",") + std::string(each->if_name);
  }
  fact("interfaces", names);
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  fact("connect", outcome(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address)));
  close(fd);
  fact("mount", outcome(mount("none", "/", "tmpfs", 0, nullptr)));
  // Pid 1 is the launcher's; to end it would look like a crash of the program.
  kill(1, SIGKILL);
  fact("trace-pid-1", traceOutcome(1));
}

void viewFacts() {
  fact("root", entriesOf("/"));
  fact("dev", entriesOf("/dev"));
  fact("etc", entriesOf("/etc"));
  fact("usr", entriesOf("/usr"));
  fact("img", entriesOf("/img"));
  fact("proc", entriesOf("/proc").substr(0, 18));
  std::array<char, 256> cwd{};
  fact("cwd", getcwd(cwd.data(), cwd.size()) != nullptr ? cwd.data() : strerrorname_np(errno));
  fact("write-root", makeOutcome("/"));
  fact("write-dev", makeOutcome("/dev"));
  fact("write-lib", makeOutcome("/usr/lib/x86_64-linux-gnu"));
  fact("write-image", outcome(open("/img/0", O_WRONLY)));
  fact("read-image", outcome(open("/img/0", O_RDONLY)));
  fact("write-null", outcome(open("/dev/null", O_WRONLY)));
  fact("terminal", outcome(open("/dev/tty", O_RDWR)));
}

void processFacts(const std::string& descriptors) {
  fact("descriptors", descriptors);
  int changed = 0;
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    // ASan installs a handler of its own for some.
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) ++changed;
  }
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  fact("ignored-signals", std::to_string(changed));
  fact("blocked-signals", sigisemptyset(&mask) != 0 ? "0" : "some");
  std::array<char, 16> bits{};
  std::snprintf(bits.data(), bits.size(), "%03o", umask(0));
  fact("umask", bits.data());
  int variables = 0;
  for (char** each = environ; *each != nullptr; ++each) ++variables;
  fact("environment", std::to_string(variables));
  rlimit limit{};
  getrlimit(RLIMIT_CORE, &limit);
  fact("core", std::to_string(limit.rlim_max));
  fact("session", getsid(0) == getpid() || getsid(0) == 1 || getsid(0) == 0 ? "own" : "foreign");
}

std::string openDescriptors() {
  std::string joined;
  for (int fd = 0; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) joined += (joined.empty() ? "" : ",") + std::to_string(fd);
  }
  return joined;
}

[[noreturn]] void waitForever() {
  for (;;) pause();
}

}  // namespace

int main(int argc, char** argv) {
  std::string descriptors = openDescriptors();  // before anything here opens one
  std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "facts") {
    processFacts(descriptors);
    identityFacts();
    viewFacts();
    namespaceFacts();
    _exit(0);
  }
  if (mode == "exit") _exit(std::stoi(argv[2]));
  if (mode == "signal") {
    const int number = std::stoi(argv[2]);
    std::signal(number, SIG_DFL);
    kill(getpid(), number);
    waitForever();
  }
  if (mode == "until-term") {
    std::signal(SIGTERM, [](int) { _exit(43); });
    fact("ready", "1");
    waitForever();
  }
  if (mode == "deaf") {
    std::signal(SIGTERM, SIG_IGN);
    // A descendant in a session of its own: only the end of the pid namespace reaches it.
    if (fork() == 0) {
      setsid();
      waitForever();
    }
    fact("ready", "1");
    waitForever();
  }
  if (mode == "flood") {
    std::string junk(1 << 16, 'x');
    fact("ready", "1");
    for (;;) {
      if (write(STDOUT_FILENO, junk.data(), junk.size()) < 0) _exit(1);
    }
  }
  _exit(98);
}
