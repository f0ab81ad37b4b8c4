#include "services/cli/read/reader-identity.h"

#include <cctype>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <memory>
#include <pwd.h>
#include <set>
#include <unistd.h>
#include <vector>

#include <kj/io.h>

#include "common/sandbox/status.h"

namespace cordon::cli {
namespace {

// Room for one account's or group's texts; a larger one exists as well, which is all we ask.
constexpr std::size_t ENTRY_BYTES = 16384;

// Larger than any status file; the kernel writes about 1.5 KiB.
constexpr std::size_t STATUS_BYTES = 16384;

// Empty where it cannot be read: the process ended, before it was opened or after.
std::string contentOf(const std::string& path) {
  const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) return {};
  const kj::AutoCloseFd file(opened);
  std::string text(STATUS_BYTES, '\0');
  const ssize_t size = ::read(file, text.data(), text.size());
  text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return text;
}

// Nothing where the processes cannot be seen.
std::optional<std::set<std::uint64_t>> idsOfProcesses(const std::string& procPath) {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir(procPath.c_str()), ::closedir);
  if (!proc) return std::nullopt;
  std::set<std::uint64_t> ids;
  while (const dirent* entry = ::readdir(proc.get())) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    const std::string text = contentOf(procPath + "/" + entry->d_name + "/status");
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
