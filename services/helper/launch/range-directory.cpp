#include "services/helper/launch/range-directory.h"

#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <memory>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "services/helper/launch/error.h"
#include "services/helper/launch/log.h"

namespace cordon::launch {
namespace {

constexpr int DIRECTORY_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
// How often a directory may vanish between its making and its locking before we give up.
constexpr int ATTEMPTS = 100;

UniqueFd openRootDirectoryAt(int parent, const std::string& name, const std::string& path) {
  if (mkdirat(parent, name.c_str(), 0711) != 0 && errno != EEXIST)
    failStep("make-directories", path);
  UniqueFd fd(openat(parent, name.c_str(), DIRECTORY_FLAGS));
  if (!fd) failStep("make-directories", path);
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) failStep("make-directories", path);
  // Whoever could write here could put a socket of their own where a guest's is expected.
  if (status.st_uid != 0 || ((status.st_mode & 0022) != 0 && (status.st_mode & S_ISVTX) == 0)) {
    throw LaunchError(Code::STEP_FAILED, "make-directories", path, 0,
                      "must be root's and writable by root alone");
  }
  return fd;
}

// Whether `name` in `parent` still is what `fd` has open.
bool isLinked(int parent, const std::string& name, const UniqueFd& fd) {
  struct stat opened {};
  struct stat named {};
  return fstat(fd.get(), &opened) == 0 &&
         fstatat(parent, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Removes the entries of a directory that only sockets and files are made in.
void empty(const UniqueFd& directory, const std::string& path) {
  std::unique_ptr<DIR, int (*)(DIR*)> entries(
      fdopendir(openat(directory.get(), ".", DIRECTORY_FLAGS)), closedir);
  if (!entries) failStep("empty-directory", path);
  while (const dirent* entry = readdir(entries.get())) {
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (unlinkat(directory.get(), name.c_str(), 0) != 0 && errno != ENOENT)
      failStep("empty-directory", std::string(path).append("/").append(name));
  }
}

std::string parentOf(const std::string& path) {
  std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

UniqueFd openRootDirectory(const std::string& path) {
  UniqueFd parent(open(parentOf(path).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent) failStep("make-directories", parentOf(path));
  return openRootDirectoryAt(parent.get(), path.substr(path.rfind('/') + 1), path);
}

RangeDirectory::RangeDirectory(const std::string& runtimeDir, const std::string& range)
    : ownPath(runtimeDir + "/ranges/" + range) {
  UniqueFd runtime = openRootDirectory(runtimeDir);
  UniqueFd ranges = openRootDirectoryAt(runtime.get(), "ranges", runtimeDir + "/ranges");
  for (int attempt = 0; attempt < ATTEMPTS; ++attempt) {
    directory = openRootDirectoryAt(ranges.get(), range, ownPath);
    if (flock(directory.get(), LOCK_SH) != 0) failStep("lock-range", ownPath);
    if (isLinked(ranges.get(), range, directory)) return;
  }
  throw LaunchError(Code::STEP_FAILED, "lock-range", ownPath, 0, "vanished each time it was made");
}

RangeDirectory::~RangeDirectory() {
  // Others of the range hold a shared lock; whoever gets the exclusive one is the last.
  if (flock(directory.get(), LOCK_EX | LOCK_NB) != 0) return;
  if (rmdir(ownPath.c_str()) != 0 && errno != ENOTEMPTY && errno != ENOENT) {
    warn("cannot remove " + ownPath + ": " + strerrorname_np(errno));
  }
}

OwnedDirectory::OwnedDirectory(const UniqueFd& parent, const std::string& name,
                               const std::string& fullPath, Identity owner, gid_t group,
                               unsigned mode)
    : parentDirectory(parent), ownName(name), ownPath(fullPath) {
  for (int attempt = 0; attempt < ATTEMPTS; ++attempt) {
    if (mkdirat(parentDirectory.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
      failStep("make-directory", ownPath);
    directory = UniqueFd(openat(parentDirectory.get(), name.c_str(), DIRECTORY_FLAGS));
    if (!directory) {
      if (errno == ENOENT) continue;
      failStep("make-directory", ownPath);
    }
    if (flock(directory.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) failStep("lock-directory", ownPath);
      throw LaunchError(Code::GUEST_EXISTS, "lock-directory", ownPath, 0,
                        "another cordon-launch holds it");
    }
    if (!isLinked(parentDirectory.get(), name, directory)) continue;
    struct stat status {};
    if (fstat(directory.get(), &status) != 0) failStep("make-directory", ownPath);
    if (status.st_uid != owner.uid) {
      // Ours are root's only until they are given away, and empty until then.
      if (unlinkat(parentDirectory.get(), name.c_str(), AT_REMOVEDIR) != 0)
        failStep("replace-directory", ownPath);
      if (mkdirat(parentDirectory.get(), name.c_str(), 0700) != 0)
        failStep("make-directory", ownPath);
      directory = UniqueFd(openat(parentDirectory.get(), name.c_str(), DIRECTORY_FLAGS));
      if (!directory || flock(directory.get(), LOCK_EX | LOCK_NB) != 0)
        failStep("lock-directory", ownPath);
    }
    empty(directory, ownPath);
    // The mode before the owner: afterwards only CAP_FOWNER could change it.
    if (fchown(directory.get(), 0, 0) != 0 || fchmod(directory.get(), mode) != 0 ||
        fchown(directory.get(), owner.uid, group) != 0) {
      failStep("give-directory", ownPath);
    }
    return;
  }
  throw LaunchError(Code::STEP_FAILED, "make-directory", ownPath, 0,
                    "vanished each time it was made");
}

OwnedDirectory::~OwnedDirectory() {
  try {
    empty(directory, ownPath);
  } catch (const LaunchError& error) {
    warn(error.what());
  }
  if (unlinkat(parentDirectory.get(), ownName.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
    warn("cannot remove " + ownPath + ": " + strerrorname_np(errno));
  }
}

UniqueFd listenAs(const UniqueFd& directory, const std::string& path, const std::string& name,
                  Identity owner, gid_t group, unsigned umaskBits) {
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener) failStep("listen-as", path);
  pid_t child = fork();
  if (child < 0) failStep("listen-as", path);
  if (child == 0) {
    // In the directory itself, so that neither its path's length nor a changed parent matters.
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, name.c_str(), sizeof address.sun_path - 1);
    umask(umaskBits);
    bool done =
        fchdir(directory.get()) == 0 && setgroups(0, nullptr) == 0 &&
        setresgid(group, group, group) == 0 && setresuid(owner.uid, owner.uid, owner.uid) == 0 &&
        bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        listen(listener.get(), 128) == 0;
    _exit(done ? 0 : errno);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) failStep("listen-as", path);
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw LaunchError(Code::STEP_FAILED, "listen-as", path,
                      WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                      WIFEXITED(status) ? "" : "the child was killed");
  }
  return listener;
}

}  // namespace cordon::launch
