#include "common/sandbox/sandbox.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <grp.h>
#include <ifaddrs.h>
#include <limits>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <net/if.h>
#include <sched.h>
#include <span>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "common/sandbox/status.h"

#ifdef CORDON_SANITIZED
namespace {
// The leak check stops its own threads with clone and ptrace, which no policy grants.
bool isConfined = false;
}  // namespace
extern "C" int __lsan_is_turned_off();  // NOLINT(bugprone-reserved-identifier): LeakSanitizer's own
extern "C" int __lsan_is_turned_off() {
  return isConfined ? 1 : 0;
}
#endif

namespace cordon::sandbox {
namespace {

using Result = std::optional<Failure>;

Result failed(Step step) {
  return Failure{step, errno, 0};
}
Result unacceptable(Step step, std::uint64_t found) {
  return Failure{step, 0, found};
}

// Larger than any status file; the kernel writes about 1.5 KiB.
constexpr std::size_t STATUS_SIZE = 8192;

class StatusFile {
 public:
  StatusFile() = default;
  StatusFile(const StatusFile&) = delete;
  StatusFile& operator=(const StatusFile&) = delete;
  ~StatusFile() {
    if (fd >= 0) {
      close(fd);
    }
  }

  Result open(std::optional<int> inherited) {
    fd = inherited ? *inherited : ::open("/proc/self/status", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
      return failed(Step::OPEN_STATUS);
    }
    struct statfs system {};
    if (fstatfs(fd, &system) != 0) {
      return failed(Step::OPEN_STATUS);
    }
    if (system.f_type != PROC_SUPER_MAGIC) {
      return unacceptable(Step::OPEN_STATUS, static_cast<std::uint64_t>(system.f_type));
    }
    return {};
  }

  // On the stack, one call: what the policy of any service allows, and what works once it is not
  // dumpable.
  std::optional<Status> read() const {
    std::array<char, STATUS_SIZE> text{};
    const auto length = pread(fd, text.data(), text.size(), 0);
    if (length <= 0) {
      return std::nullopt;
    }
    return parseStatus({text.data(), static_cast<std::size_t>(length)});
  }

 private:
  int fd = -1;
};

// First, and before anything is given up: a process that is root without capabilities still owns
// the host's files, and every later step would only hide that.
Result refuseRoot() {
  uid_t real = 0;
  uid_t effective = 0;
  uid_t saved = 0;
  if (getresuid(&real, &effective, &saved) != 0) {
    return failed(Step::REFUSE_ROOT);
  }
  if (real == 0 || effective == 0 || saved == 0) {
    return unacceptable(Step::REFUSE_ROOT, 0);
  }
  return {};
}

// Before the filter: the policies have no open. The descriptor stays readable when the process is
// not dumpable.
Result openStatus(StatusFile& file, std::optional<int> inherited) {
  return file.open(inherited);
}

// Before the filter: afterwards the number must be higher by exactly what enter() adds. A unit's
// own filters, of which systemd may load dozens, would satisfy "Seccomp: 2" without ours.
Result countFilters(const StatusFile& file, std::uint64_t& filters) {
  const auto status = file.read();
  if (!status) {
    return failed(Step::COUNT_FILTERS);
  }
  // An inherited descriptor could be another process's: its confinement would be judged for ours.
  if (status->pids.back() != static_cast<std::uint64_t>(getpid())) {
    return unacceptable(Step::OPEN_STATUS, status->pids.back());
  }
  filters = status->filters;
  return {};
}

// While CAP_SETGID may still be there. Without it, verifyStatus decides whether what is left is
// acceptable.
Result dropGroups() {
  if (setgroups(0, nullptr) != 0 && errno != EPERM) {
    return failed(Step::DROP_GROUPS);
  }
  return {};
}

struct Interfaces {
  bool isKnown = false;
  std::uint64_t foreign = 0;  // other than lo
  bool isLoopbackUp = false;

  bool areNone() const { return isKnown && foreign == 0 && !isLoopbackUp; }
};

Interfaces listInterfaces() {
  Interfaces interfaces;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return interfaces;
  }
  interfaces.isKnown = true;
  for (const auto* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (std::strcmp(entry->ifa_name, "lo") != 0) {
      ++interfaces.foreign;
    } else if ((entry->ifa_flags & IFF_UP) != 0) {
      interfaces.isLoopbackUp = true;
    }
  }
  freeifaddrs(list);
  return interfaces;
}

// While CAP_SYS_ADMIN may still be there, and while a netlink socket may still be opened. An empty
// network namespace is also what bounds abstract Unix sockets, which no file mode guards.
Result isolateNetwork() {
  auto interfaces = listInterfaces();
  if (!interfaces.areNone() && unshare(CLONE_NEWNET) == 0) {
    interfaces = listInterfaces();
  }
  if (!interfaces.isKnown) {
    return failed(Step::ISOLATE_NETWORK);
  }
  if (!interfaces.areNone()) {
    return unacceptable(Step::ISOLATE_NETWORK, interfaces.foreign);
  }
  return {};
}

// Before the first allocation under the filter: when its one heap is full, malloc would look for
// processors and map a second heap with calls that no policy grants, and an honest std::bad_alloc
// would become a death by policy.
void useOneHeap() {
  mallopt(M_ARENA_MAX, 1);
}

// Before the filter, which has no prlimit64. Soft and hard alike: a soft limit alone can be raised
// again, and where there are two, the hard one ends the process whatever it does.
Result limitResources(const Limits& limits) {
  struct Limit {
    Step step;
    __rlimit_resource resource;
    std::optional<std::uint64_t> value;
    std::uint64_t reserve = 0;  // by which the hard limit is higher
  };
  const std::array<Limit, 7> wanted = {{
      {Step::LIMIT_CORE, RLIMIT_CORE, 0},
      {Step::LIMIT_OPEN_FILES, RLIMIT_NOFILE, limits.openFiles},
      {Step::LIMIT_PROCESSES, RLIMIT_NPROC, limits.processes},
      {Step::LIMIT_FILE_SIZE, RLIMIT_FSIZE, limits.fileSize},
      {Step::LIMIT_LOCKED_MEMORY, RLIMIT_MEMLOCK, limits.lockedMemory},
      {Step::LIMIT_ADDRESS_SPACE, RLIMIT_AS, hasMemoryLimit() ? limits.addressSpace : std::nullopt},
      {Step::LIMIT_PROCESSOR_TIME, RLIMIT_CPU, limits.processorSeconds, 1},
  }};
  for (const auto& limit : wanted) {
    if (!limit.value) {
      continue;
    }
    rlimit current{};
    if (getrlimit(limit.resource, &current) != 0) {
      return failed(limit.step);
    }
    // Whoever started the service may have set a lower hard limit; that one stays.
    const rlimit lowered{std::min<rlim_t>(*limit.value, current.rlim_max),
                         std::min<rlim_t>(*limit.value + limit.reserve, current.rlim_max)};
    if (setrlimit(limit.resource, &lowered) != 0) {
      return failed(limit.step);
    }
  }
  return {};
}

// Ambient, then bounding (which needs CAP_SETPCAP), then the three sets of the process. A process
// that arrives without CAP_SETPCAP must have an empty bounding set already.
Result emptyCapabilities() {
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) {
    return failed(Step::CLEAR_AMBIENT);
  }
  for (unsigned long capability = 0;; ++capability) {
    const int held = prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
    if (held < 0) {
      break;
    }  // EINVAL: past the kernel's last capability
    if (held > 0 && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) {
      return Failure{Step::CLEAR_BOUNDING, errno, capability};
    }
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  if (syscall(SYS_capset, &header, none.data()) != 0) {
    return failed(Step::CLEAR_CAPABILITIES);
  }
  return {};
}

// Without CAP_SYS_ADMIN the kernel takes a filter only from a process that cannot gain privileges
// by exec.
Result forbidNewPrivileges() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return failed(Step::FORBID_NEW_PRIVILEGES);
  }
  return {};
}

// After the last change of credentials, which would make the process dumpable or not by a rule of
// its own. Keeps other processes of the same uid from reading its memory, and its memory out of
// core dumps.
Result becomeUndumpable() {
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
    return failed(Step::BECOME_UNDUMPABLE);
  }
  const int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
  if (dumpable != 0) {
    return unacceptable(Step::BECOME_UNDUMPABLE, static_cast<std::uint64_t>(dumpable));
  }
  return {};
}

// Last of what acts: everything above needs calls that the policy kills.
Result loadPolicy(const Policy& policy) {
  if (const auto error = loadFilter(policy.run)) {
    return Failure{Step::LOAD_FILTER, *error, 0};
  }
  return {};
}

Result verifyIdentity(const Status& status, bool keepsForeignGroups) {
  for (const auto uid : status.uids) {
    if (uid == 0 || uid != status.uids.front()) {
      return unacceptable(Step::VERIFY_UIDS, uid);
    }
  }
  for (const auto gid : status.gids) {
    if (gid == 0 || gid != status.gids.front()) {
      return unacceptable(Step::VERIFY_GIDS, gid);
    }
  }
  for (const auto group : status.groups) {
    if (group != status.gids.front() && !keepsForeignGroups) {
      return unacceptable(Step::VERIFY_GROUPS, group);
    }
  }
  return {};
}

Result verifyCapabilities(const Status& status) {
  const std::array<std::pair<Step, std::uint64_t>, 5> sets = {{
      {Step::VERIFY_INHERITABLE, status.inheritable},
      {Step::VERIFY_PERMITTED, status.permitted},
      {Step::VERIFY_EFFECTIVE, status.effective},
      {Step::VERIFY_BOUNDING, status.bounding},
      {Step::VERIFY_AMBIENT, status.ambient},
  }};
  for (const auto& [step, set] : sets) {
    if (set != 0) {
      return unacceptable(step, set);
    }
  }
  return {};
}

// After the filter, on the descriptor from before: this is the kernel's word on what holds while
// the service serves.
Result verifyStatus(const StatusFile& file, std::uint64_t filtersBefore, bool keepsForeignGroups) {
  const auto status = file.read();
  if (!status) {
    return failed(Step::VERIFY_STATUS);
  }
  if (auto failure = verifyIdentity(*status, keepsForeignGroups)) {
    return failure;
  }
  if (auto failure = verifyCapabilities(*status)) {
    return failure;
  }
  if (status->noNewPrivs != 1) {
    return unacceptable(Step::VERIFY_NO_NEW_PRIVILEGES, status->noNewPrivs);
  }
  if (status->seccomp != SECCOMP_MODE_FILTER) {
    return unacceptable(Step::VERIFY_SECCOMP, status->seccomp);
  }
  if (status->filters != filtersBefore + 1) {
    return unacceptable(Step::VERIFY_FILTER_COUNT, status->filters);
  }
  return {};
}

constexpr std::array NAMES = {
    "refuse-root",       "open-status",         "count-filters",       "drop-groups",
    "isolate-network",   "limit-core",          "limit-open-files",    "limit-processes",
    "limit-file-size",   "limit-locked-memory", "limit-address-space", "limit-processor-time",
    "clear-ambient",     "clear-bounding",      "clear-capabilities",  "forbid-new-privileges",
    "become-undumpable", "load-filter",         "verify-status",       "verify-uids",
    "verify-gids",       "verify-groups",       "verify-inheritable",  "verify-permitted",
    "verify-effective",  "verify-bounding",     "verify-ambient",      "verify-no-new-privileges",
    "verify-seccomp",    "verify-filter-count",
};
static_assert(NAMES.size() == static_cast<std::size_t>(Step::VERIFY_FILTER_COUNT) + 1);

}  // namespace

bool hasMemoryLimit() {
#ifdef CORDON_SANITIZED
  return false;
#else
  return true;
#endif
}

std::optional<Failure> enter(const Confinement& confinement) {
  StatusFile status;
  std::uint64_t filtersBefore = 0;
  if (auto failure = refuseRoot()) {
    return failure;
  }
  if (auto failure = openStatus(status, confinement.statusFd)) {
    return failure;
  }
  if (auto failure = countFilters(status, filtersBefore)) {
    return failure;
  }
  if (auto failure = dropGroups()) {
    return failure;
  }
  if (auto failure = isolateNetwork()) {
    return failure;
  }
  useOneHeap();
  if (auto failure = limitResources(confinement.limits)) {
    return failure;
  }
  if (auto failure = emptyCapabilities()) {
    return failure;
  }
  if (auto failure = forbidNewPrivileges()) {
    return failure;
  }
  if (auto failure = becomeUndumpable()) {
    return failure;
  }
  if (auto failure = loadPolicy(confinement.policy)) {
    return failure;
  }
#ifdef CORDON_SANITIZED
  isConfined = true;
#endif
  return verifyStatus(status, filtersBefore, confinement.keepsForeignGroups);
}

std::optional<int> loadFilter(std::span<const sock_filter> program) {
  if (program.empty() || program.size() > std::numeric_limits<unsigned short>::max()) {
    return EINVAL;
  }
  // The kernel only reads it; the structure has no const.
  const sock_fprog filter{static_cast<unsigned short>(program.size()),
                          const_cast<sock_filter*>(program.data())};
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) != 0) {
    return errno;
  }
  return {};
}

const char* nameOf(Step step) {
  return NAMES[static_cast<std::size_t>(step)];
}

std::string describe(const Failure& failure) {
  std::string text = "not confined: ";
  text += nameOf(failure.step);
  text += " found " + std::to_string(failure.found);
  if (failure.error != 0) {
    text += ", errno " + std::to_string(failure.error) + " (";
    text += strerrordesc_np(failure.error);
    text += ')';
  }
  return text;
}

std::string printable(const Policy& policy) {
  return std::string(policy.expanded) + "sha256 " + std::string(policy.sha256) + '\n';
}

}  // namespace cordon::sandbox
