#include "tests/support/residue.h"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>

#include "services/guest/cgroups.h"

namespace cordon::tests {
namespace {

namespace fs = std::filesystem;

bool isGone(pid_t process) {
  return ::kill(process, 0) != 0 && errno == ESRCH;
}

// The maker of `entry`, a name of the form <prefix><pid>-<anything>.
std::optional<pid_t> makerOf(std::string_view entry, std::string_view prefix) {
  if (!entry.starts_with(prefix)) return std::nullopt;
  entry.remove_prefix(prefix.size());
  pid_t maker = 0;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), maker);
  if (error != std::errc() || maker <= 0) return std::nullopt;
  if (end == entry.data() + entry.size() || *end != '-') return std::nullopt;
  return maker;
}

template <typename Chosen, typename Each>
void eachOf(const std::string& parent, std::string_view prefix, Chosen chosen, Each each) {
  // Others make and remove entries meanwhile: what cannot be read is theirs.
  std::error_code ignored;
  for (auto entry = fs::directory_iterator(parent, ignored); entry != fs::directory_iterator();
       entry.increment(ignored)) {
    if (ignored) return;
    const auto maker = makerOf(entry->path().filename().string(), prefix);
    if (maker && chosen(*maker)) each(entry->path());
  }
}

void endCommandsIn(const fs::path& path) {
  guest::Fd opened(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) return;
  const guest::ExecCgroup cgroup(path, std::move(opened));
  // A cgroup can be removed only once the last of it is reaped, by whoever is its parent.
  for (int round = 0; round < 200; ++round) {
    if (cgroup.populated() && !cgroup.kill()) return;
    if (::rmdir(path.c_str()) == 0 || errno != EBUSY) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

template <typename Chosen>
void endCommands(Chosen chosen) {
  const std::string base = guest::ownCgroup();
  if (!base.empty()) eachOf(base, guest::EXEC_CGROUP_PREFIX, chosen, endCommandsIn);
}

}  // namespace

std::string makeOwnedDirectory(const std::string& name) {
  return makeOwnedDirectory("/tmp", name);
}

std::string makeOwnedDirectory(const std::string& parent, const std::string& name) {
  eachOf(parent, name + "-", isGone, [](const fs::path& path) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  });
  std::string made = parent + "/" + name + "-" + std::to_string(::getpid()) + "-XXXXXX";
  if (::mkdtemp(made.data()) == nullptr) throw std::runtime_error("mkdtemp " + made);
  return made;
}

void dieWith(pid_t parent, int signal) {
  if (::prctl(PR_SET_PDEATHSIG, signal) != 0 || ::getppid() != parent) ::_exit(126);
}

void endCommandsOf(pid_t agent) {
  endCommands([agent](pid_t maker) { return maker == agent; });
}

void endCommandsOfTheGone() {
  endCommands(isGone);
}

}  // namespace cordon::tests
