#include "services/helper/launch/identity.h"

#include <charconv>
#include <dirent.h>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include "services/helper/launch/error.h"

namespace cordon::launch {
namespace {

bool runsUnder(const std::string& statusPath, uid_t uid) {
  std::ifstream status(statusPath);
  std::string line;
  bool zombie = false;
  while (std::getline(status, line)) {
    if (line.starts_with("State:")) zombie = line.find('Z') != std::string::npos;
    if (!line.starts_with("Uid:")) continue;
    // Real, effective, saved and file-system, each behind a tab.
    std::istringstream ids(line.substr(line.find(':') + 1));
    for (std::uint64_t id = 0; ids >> id;) {
      if (id == uid) return !zombie;
    }
    return false;
  }
  return false;  // it ended while we looked
}

}  // namespace

std::optional<pid_t> processOf(uid_t uid, const std::string& procPath) {
  std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir(procPath.c_str()), closedir);
  if (!proc) failStep("refuse-busy-uid", procPath);
  while (const dirent* entry = readdir(proc.get())) {
    std::string_view text = entry->d_name;
    pid_t pid = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (error != std::errc() || end != text.data() + text.size()) continue;
    if (runsUnder(procPath + "/" + entry->d_name + "/status", uid)) return pid;
  }
  return std::nullopt;
}

void refuseBusyUid(uid_t uid) {
  if (auto pid = processOf(uid)) {
    throw LaunchError(Code::UID_BUSY, "refuse-busy-uid", "uid " + std::to_string(uid), 0,
                      "held by process " + std::to_string(*pid));
  }
}

}  // namespace cordon::launch
