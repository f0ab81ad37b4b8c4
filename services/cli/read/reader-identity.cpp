#include "services/cli/read/reader-identity.h"

#include <cctype>
#include <cerrno>
#include <dirent.h>
#include <fstream>
#include <grp.h>
#include <iterator>
#include <memory>
#include <pwd.h>
#include <set>
#include <string_view>
#include <vector>

#include "common/sandbox/status.h"

namespace cordon::cli {
namespace {

// Room for one account's or group's texts; a larger one exists as well, which is all we ask.
constexpr std::size_t ENTRY_BYTES = 16384;

// Nothing where the processes cannot be seen.
std::optional<std::set<std::uint64_t>> idsOfProcesses(const std::string& procPath) {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir(procPath.c_str()), ::closedir);
  if (!proc) return std::nullopt;
  std::set<std::uint64_t> ids;
  while (const dirent* entry = ::readdir(proc.get())) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    std::ifstream file(procPath + "/" + entry->d_name + "/status");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (const auto status = sandbox::parseStatus(text)) {
      ids.insert(status->uids.begin(), status->uids.end());
      ids.insert(status->gids.begin(), status->gids.end());
    }
  }
  return ids;
}

// A name service that cannot answer does not prove that an account exists; a directory server that
// is down must not keep an operator from reading a file.
bool isAccount(uid_t uid) {
  std::vector<char> buffer(ENTRY_BYTES);
  passwd entry{};
  passwd* found = nullptr;
  const int error = ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr || error == ERANGE;
}

bool isGroup(gid_t gid) {
  std::vector<char> buffer(ENTRY_BYTES);
  group entry{};
  group* found = nullptr;
  const int error = ::getgrgid_r(gid, &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr || error == ERANGE;
}

}  // namespace

std::optional<uid_t> findUnusedUid(pid_t start, const std::string& procPath) {
  const auto taken = idsOfProcesses(procPath);
  if (!taken) return std::nullopt;
  for (uid_t i = 0; i < READER_UIDS; ++i) {
    const uid_t uid = READER_UID_BASE + (static_cast<uid_t>(start) + i) % READER_UIDS;
    if (!taken->contains(uid) && !isAccount(uid) && !isGroup(uid)) return uid;
  }
  return std::nullopt;
}

}  // namespace cordon::cli
