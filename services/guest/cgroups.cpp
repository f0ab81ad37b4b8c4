#include "services/guest/cgroups.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <signal.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include "services/guest/reply.h"

namespace cordon::guest {
namespace {

// Rounds of KILL, about a second, where the kernel has no cgroup.kill: a fork bomb may outrun some,
// and on a busy machine it stands still late.
constexpr int KILL_ROUNDS = 500;
constexpr std::chrono::milliseconds KILL_ROUND_PAUSE{2};

std::string readAll(int directory, const char* name) {
  std::string text;
  Fd file(::openat(directory, name, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return text;
  std::array<char, 4096> piece;
  for (;;) {
    ssize_t count = ::read(file.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
}

template <typename Each>
void eachLine(std::string_view text, Each each) {
  while (!text.empty()) {
    std::size_t end = text.find('\n');
    each(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
}

std::string_view word(std::string_view line, int index) {
  for (; index > 0; --index) {
    std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return {};
    line.remove_prefix(space + 1);
  }
  return line.substr(0, line.find(' '));
}

// Named by an agent that is gone. An agent that runs beside this one may be about to fill an empty
// one.
bool abandoned(std::string_view name) {
  if (!name.starts_with(EXEC_CGROUP_PREFIX)) return false;
  name.remove_prefix(EXEC_CGROUP_PREFIX.size());
  pid_t owner = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), owner);
  return error == std::errc{} && owner > 0 && ::kill(owner, 0) != 0 && errno == ESRCH;
}

}  // namespace

std::string ownCgroup() {
  std::string_view path;
  std::string membership = readAll(AT_FDCWD, "/proc/self/cgroup");
  eachLine(membership, [&](std::string_view line) {
    if (line.starts_with("0::")) path = line.substr(3);
  });
  if (path.empty()) return {};
  std::string directory;
  std::string mounts = readAll(AT_FDCWD, "/proc/self/mountinfo");
  eachLine(mounts, [&](std::string_view line) {
    std::size_t separator = line.find(" - ");
    if (separator == std::string_view::npos || !directory.empty()) return;
    if (word(line.substr(separator + 3), 0) != "cgroup2") return;
    std::string_view root = word(line, 3);
    std::string_view below = path;
    if (root != "/") {
      if (!path.starts_with(root)) return;
      below.remove_prefix(root.size());
    }
    directory = std::string(word(line, 4)) + std::string(below);
    while (directory.ends_with('/')) directory.pop_back();
  });
  return directory;
}

Fd ExecCgroup::openProcs() const {
  return Fd(::openat(directory.get(), "cgroup.procs", O_WRONLY | O_CLOEXEC));
}

bool ExecCgroup::populated() const {
  return readAll(directory.get(), "cgroup.events").find("populated 1") != std::string::npos;
}

std::vector<pid_t> ExecCgroup::processes() const {
  std::vector<pid_t> found;
  std::string text = readAll(directory.get(), "cgroup.procs");
  eachLine(text, [&](std::string_view line) {
    pid_t pid = 0;
    auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), pid);
    if (error == std::errc{} && pid > 0) found.push_back(pid);
  });
  return found;
}

void ExecCgroup::terminate() const {
  std::vector<std::pair<pid_t, Fd>> handles;
  for (pid_t pid : processes()) {
    Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (handle.valid()) handles.emplace_back(pid, std::move(handle));
  }
  // A number may have passed to a stranger between the list and the handle; a second list, taken
  // while the handle pins the process, tells.
  std::vector<pid_t> still = processes();
  for (const auto& [pid, handle] : handles) {
    if (std::find(still.begin(), still.end(), pid) == still.end()) continue;
    ::syscall(SYS_pidfd_send_signal, handle.get(), SIGTERM, nullptr, 0);
  }
}

bool ExecCgroup::kill() const {
  Fd switchFile(::openat(directory.get(), "cgroup.kill", O_WRONLY | O_CLOEXEC));
  if (switchFile.valid()) return ::write(switchFile.get(), "1", 1) == 1;
  // Linux before 5.14: frozen processes cannot fork, and take the KILL on thawing.
  auto freeze = [&](const char* state) {
    Fd file(::openat(directory.get(), "cgroup.freeze", O_WRONLY | O_CLOEXEC));
    return file.valid() && ::write(file.get(), state, 1) == 1;
  };
  const bool freezes = freeze("1");
  bool all = false;
  for (int round = 0; round < KILL_ROUNDS && !all; ++round) {
    // The order to freeze is obeyed by and by, and until all stand still one may fork behind the
    // list. A list that is taken after they do is whole.
    const bool still =
        freezes && readAll(directory.get(), "cgroup.events").find("frozen 1") != std::string::npos;
    for (pid_t pid : processes()) ::kill(pid, SIGKILL);
    all = still || !populated();
    if (!all) std::this_thread::sleep_for(KILL_ROUND_PAUSE);
  }
  if (freezes) (void)freeze("0");
  return all;
}

Cgroups::Cgroups(DiagRing& diag) {
  base = ownCgroup();
  if (base.empty()) {
    diag.warn("cgroup-unavailable", "no cgroup v2: a time-out kills the process group only");
    return;
  }
  // What an earlier agent left behind and has ended since.
  if (DIR* listing = ::opendir(base.c_str()); listing != nullptr) {
    while (dirent* entry = ::readdir(listing)) {
      if (abandoned(entry->d_name)) leftovers.push_back(base + "/" + entry->d_name);
    }
    ::closedir(listing);
  }
  sweep();
  auto probe = make();
  if (!probe) {
    int error = errno;
    diag.warn("cgroup-unavailable",
              errnoText(base + ": a time-out kills the process group only", error));
    base.clear();
    return;
  }
  release(std::move(*probe));
}

std::optional<ExecCgroup> Cgroups::make() {
  if (base.empty()) return std::nullopt;
  std::string path = base + "/" + std::string(EXEC_CGROUP_PREFIX) + std::to_string(::getpid()) +
                     "-" + std::to_string(++counter);
  if (::mkdir(path.c_str(), 0755) != 0) return std::nullopt;
  Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) {
    ::rmdir(path.c_str());
    return std::nullopt;
  }
  return ExecCgroup(std::move(path), std::move(directory));
}

void Cgroups::release(ExecCgroup cgroup) {
  std::lock_guard lock(mutex);
  leftovers.push_back(cgroup.where());
  sweep();
}

void Cgroups::sweep() {
  std::erase_if(leftovers, [](const std::string& path) {
    return ::rmdir(path.c_str()) == 0 || errno == ENOENT;
  });
}

}  // namespace cordon::guest
