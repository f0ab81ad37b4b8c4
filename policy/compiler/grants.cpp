#include "policy/compiler/grants.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace cordon::policy::compiler {
namespace {

struct Row {
  std::vector<std::string> cells;
  Place place;
};

std::string trim(std::string_view text) {
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) {
    return {};
  }
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

std::string withoutBackticks(std::string text) {
  if (text.size() >= 2 && text.front() == '`' && text.back() == '`') {
    return text.substr(1, text.size() - 2);
  }
  return text;
}

std::vector<std::string> splitCells(std::string_view line) {
  std::vector<std::string> cells(1);
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
      cells.back() += '|';
      ++i;
    } else if (line[i] == '|') {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  // What follows the closing bar is no cell.
  cells.pop_back();
  for (auto& cell : cells) {
    cell = trim(cell);
  }
  return cells;
}

std::vector<std::string> splitLines(std::string_view cell) {
  static constexpr std::string_view BREAK = "<br>";
  std::vector<std::string> lines;
  while (true) {
    const auto end = cell.find(BREAK);
    auto line = withoutBackticks(trim(cell.substr(0, end)));
    if (!line.empty()) {
      lines.push_back(std::move(line));
    }
    if (end == std::string_view::npos) {
      return lines;
    }
    cell.remove_prefix(end + BREAK.size());
  }
}

// The rows of the one table in a Markdown file, without its header and its rule.
std::vector<Row> parseTable(std::string_view text, const std::string& file, std::size_t columns,
                            Diagnostics& faults) {
  std::vector<Row> rows;
  unsigned number = 0;
  unsigned tableLine = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (!line.starts_with('|')) {
      continue;
    }
    auto cells = splitCells(line);
    if (cells.size() != columns) {
      faults.push_back(
          {Fault::MALFORMED_TABLE,
           {file, number, 1},
           "the row has " + std::to_string(cells.size()) + " cells",
           "give it " + std::to_string(columns) + "; write '|' within a cell as '\\|'"});
    } else if (++tableLine > 2) {
      rows.push_back({std::move(cells), {file, number, 1}});
    }
  }
  return rows;
}

bool requireCells(const Row& row, std::initializer_list<std::size_t> optional,
                  Diagnostics& faults) {
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    if (row.cells[i].empty() && std::find(optional.begin(), optional.end(), i) == optional.end()) {
      faults.push_back({Fault::MALFORMED_TABLE, row.place,
                        "cell " + std::to_string(i + 1) + " of the row is empty",
                        "fill it in: nobody can judge the row without it"});
      return false;
    }
  }
  return true;
}

// Calls with which a process that is lost reaches what it does not hold yet: files, other
// processes, the kernel's larger interfaces, new code. The text is what the diagnostic says.
const std::map<std::string_view, std::string_view> DANGEROUS = {
    {"acct", "accounting of the whole host"},
    {"add_key", "the kernel's key rings"},
    {"bind", "a name that others connect to"},
    {"bpf", "programs within the kernel"},
    {"capset", "capabilities"},
    {"chmod", "the file system"},
    {"chown", "the file system"},
    {"chroot", "another view of the file system"},
    {"clone", "processes or namespaces"},
    {"clone3", "processes or namespaces, by a structure that no filter can read"},
    {"connect", "any socket that the file system or the network shows"},
    {"creat", "the file system"},
    {"delete_module", "the kernel's own code"},
    {"execve", "another program"},
    {"execveat", "another program"},
    {"fanotify_init", "other processes' files"},
    {"finit_module", "the kernel's own code"},
    {"fork", "another process"},
    {"fsconfig", "mounts"},
    {"fsmount", "mounts"},
    {"fsopen", "mounts"},
    {"fspick", "mounts"},
    {"init_module", "the kernel's own code"},
    {"io_uring_enter", "calls that no filter sees"},
    {"io_uring_register", "calls that no filter sees"},
    {"io_uring_setup", "calls that no filter sees"},
    {"ioctl", "every driver behind a descriptor"},
    {"ioperm", "the machine's ports"},
    {"iopl", "the machine's ports"},
    {"kcmp", "other processes' structure"},
    {"kexec_file_load", "another kernel"},
    {"kexec_load", "another kernel"},
    {"keyctl", "the kernel's key rings"},
    {"kill", "other processes"},
    {"link", "the file system"},
    {"linkat", "the file system"},
    {"memfd_create", "a file to fill and to run"},
    {"mkdir", "the file system"},
    {"mkdirat", "the file system"},
    {"mknod", "devices"},
    {"mknodat", "devices"},
    {"mmap", "new code: a mapping with PROT_EXEC"},
    {"modify_ldt", "the processor's descriptor tables"},
    {"mount", "mounts"},
    {"mount_setattr", "mounts"},
    {"move_mount", "mounts"},
    {"mprotect", "new code: a mapping with PROT_EXEC"},
    {"name_to_handle_at", "file handles"},
    {"open", "the file system"},
    {"open_by_handle_at", "files beyond the view"},
    {"open_tree", "mounts"},
    {"openat", "the file system"},
    {"openat2", "the file system, by a structure that no filter can read"},
    {"perf_event_open", "the kernel's profiling"},
    {"personality", "weaker address space protection"},
    {"pidfd_getfd", "other processes' descriptors"},
    {"pidfd_open", "other processes"},
    {"pidfd_send_signal", "other processes"},
    {"pivot_root", "another view of the file system"},
    {"pkey_mprotect", "new code: a mapping with PROT_EXEC"},
    {"prctl", "the process's own confinement"},
    {"process_madvise", "other processes' memory"},
    {"process_vm_readv", "other processes' memory"},
    {"process_vm_writev", "other processes' memory"},
    {"ptrace", "other processes' memory and registers"},
    {"quotactl", "the file system's quotas"},
    {"reboot", "the host"},
    {"recvmsg", "descriptors that a peer sends"},
    {"remap_file_pages", "mappings past their protection"},
    {"rename", "the file system"},
    {"renameat", "the file system"},
    {"renameat2", "the file system"},
    {"request_key", "the kernel's key rings"},
    {"rt_sigqueueinfo", "other processes"},
    {"rt_tgsigqueueinfo", "other processes"},
    {"seccomp", "further filters, and listeners for them"},
    {"sendmmsg", "sending descriptors, and addresses of its own choice"},
    {"sendmsg", "sending descriptors, and addresses of its own choice"},
    {"sendto", "addresses of its own choice"},
    {"setdomainname", "the host's name"},
    {"setfsgid", "another identity"},
    {"setfsuid", "another identity"},
    {"setgid", "another identity"},
    {"setgroups", "another identity"},
    {"sethostname", "the host's name"},
    {"setns", "other namespaces"},
    {"setregid", "another identity"},
    {"setresgid", "another identity"},
    {"setresuid", "another identity"},
    {"setreuid", "another identity"},
    {"settimeofday", "the host's clock"},
    {"setuid", "another identity"},
    {"shmat", "shared memory, executable if asked"},
    {"socket", "new sockets"},
    {"swapon", "the host's memory"},
    {"symlink", "the file system"},
    {"symlinkat", "the file system"},
    {"syslog", "the kernel's log"},
    {"tgkill", "signals to other processes"},
    {"tkill", "signals to other processes"},
    {"truncate", "the file system"},
    {"umount2", "mounts"},
    {"unlink", "the file system"},
    {"unlinkat", "the file system"},
    {"unshare", "new namespaces, and with them more of the kernel"},
    {"userfaultfd", "control over the kernel's page faults"},
    {"vfork", "another process"},
    {"vmsplice", "pages shared with the kernel"},
};

}  // namespace

std::vector<Grant> parseGrants(std::string_view text, const std::string& file,
                               Diagnostics& faults) {
  std::vector<Grant> grants;
  for (auto& row : parseTable(text, file, 8, faults)) {
    if (!requireCells(row, {}, faults)) {
      continue;
    }
    Grant grant{row.cells[0], withoutBackticks(row.cells[1]), withoutBackticks(row.cells[2]),
                row.cells[6], withoutBackticks(row.cells[7]), row.place};
    const auto same = std::find_if(grants.begin(), grants.end(), [&](const Grant& other) {
      return other.id == grant.id || (other.policy == grant.policy && other.line == grant.line);
    });
    if (same != grants.end()) {
      faults.push_back({Fault::MALFORMED_TABLE, row.place, "the row repeats " + same->id,
                        "one row for one line of one policy, each with an id of its own"});
      continue;
    }
    grants.push_back(std::move(grant));
  }
  return grants;
}

std::vector<Change> parseChanges(std::string_view text, const std::string& file,
                                 Diagnostics& faults) {
  std::vector<Change> changes;
  for (auto& row : parseTable(text, file, 7, faults)) {
    if (!requireCells(row, {2, 3}, faults)) {
      continue;
    }
    Change change;
    const auto& number = row.cells[0];
    const auto parsed =
        std::from_chars(number.data(), number.data() + number.size(), change.number);
    if (parsed.ec != std::errc{} || parsed.ptr != number.data() + number.size() ||
        change.number != changes.size() + 1) {
      faults.push_back({Fault::MALFORMED_TABLE, row.place, "the row is numbered '" + number + "'",
                        "number it " + std::to_string(changes.size() + 1)});
      return changes;
    }
    change.policy = withoutBackticks(row.cells[1]);
    change.removed = splitLines(row.cells[2]);
    change.added = splitLines(row.cells[3]);
    change.test = withoutBackticks(row.cells[5]);
    change.digest = withoutBackticks(row.cells[6]);
    change.place = row.place;
    changes.push_back(std::move(change));
  }
  return changes;
}

std::string_view dangerOf(std::string_view call, const Reach& reach) {
  const auto entry = DANGEROUS.find(call);
  if (entry == DANGEROUS.end()) {
    return {};
  }
  const bool mapsMemory = call == "mmap" || call == "mprotect" || call == "pkey_mprotect";
  const bool signals = call == "tgkill" || call == "tkill";
  if ((mapsMemory && !reach.canExecute) || (call == "clone" && reach.isThreadOnly) ||
      (signals && reach.fixesSignal)) {
    return {};
  }
  return entry->second;
}

}  // namespace cordon::policy::compiler
