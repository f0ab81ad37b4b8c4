#include "services/guest/files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "services/guest/fd.h"
#include "services/guest/reply.h"

namespace cordon::guest {
namespace {

constexpr std::size_t PIECE = 64u << 10;
// A larger file than the store would keep is not held in memory either.
constexpr std::size_t READ_IN_MEMORY = 64u << 20;

std::string absolutePath(const std::string& path, const Actor& actor) {
  if (path.starts_with('/')) return path;
  std::string home = actor.home();
  // The trailing dot asks for what chdir would need: a directory that the actor may search.
  struct stat status {};
  if (::stat((home + "/.").c_str(), &status) != 0) home.clear();
  return home + "/" + path;
}

// What can be opened without waiting for someone, and is not a directory.
int judgeType(mode_t mode) {
  if (S_ISDIR(mode)) return EISDIR;
  if (S_ISFIFO(mode) || S_ISSOCK(mode)) return EIO;
  return 0;
}

// Opens after judging by name, and judges again what was opened: the name may have changed hands in
// between.
int openJudged(const std::string& path, int flags, mode_t mode, Fd& file, struct stat& status) {
  if (::stat(path.c_str(), &status) == 0) {
    if (int error = judgeType(status.st_mode); error != 0) return error;
  } else if (errno != ENOENT || (flags & O_CREAT) == 0) {
    return errno;
  }
  file = Fd(::open(path.c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode));
  if (!file.valid()) return errno;
  if (::fstat(file.get(), &status) != 0) return errno;
  return judgeType(status.st_mode);
}

int readUpTo(int file, std::uint64_t limit, Spool& content, bool& truncated) {
  auto piece = std::make_unique_for_overwrite<std::byte[]>(PIECE);
  for (;;) {
    // One byte beyond the limit tells whether there was more.
    std::uint64_t wanted = std::min<std::uint64_t>(PIECE, limit - content.size() + 1);
    ssize_t count = ::read(file, piece.get(), static_cast<std::size_t>(wanted));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      // A device that has no more for now: what it gave is the answer.
      if ((errno == EAGAIN || errno == EWOULDBLOCK) && content.size() > 0) return 0;
      return errno;
    }
    if (count == 0) return 0;
    auto room = std::min<std::uint64_t>(static_cast<std::uint64_t>(count), limit - content.size());
    if (int error = content.append({piece.get(), static_cast<std::size_t>(room)}); error != 0) {
      return error;
    }
    if (room < static_cast<std::uint64_t>(count)) {
      truncated = true;
      return 0;
    }
  }
}

int makeParents(const std::string& path) {
  std::size_t last = path.find_last_of('/');
  for (std::size_t at = path.find('/', 1); at != std::string::npos && at <= last;
       at = path.find('/', at + 1)) {
    std::string parent = path.substr(0, at);
    if (::mkdir(parent.c_str(), 0755) == 0 || errno == EEXIST) continue;
    int error = errno;
    // A directory that exists is fine even where nothing could be made (read-only, or not ours).
    struct stat status {};
    if (::stat(parent.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) continue;
    return error;
  }
  return 0;
}

int copyTo(int file, const Spool& content) {
  auto piece = std::make_unique_for_overwrite<std::byte[]>(PIECE);
  std::uint64_t at = 0;
  while (at < content.size()) {
    std::ptrdiff_t got = content.read(at, {piece.get(), PIECE});
    if (got < 0) return static_cast<int>(-got);
    for (std::ptrdiff_t done = 0; done < got;) {
      ssize_t count = ::write(file, piece.get() + done, static_cast<std::size_t>(got - done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return errno;
      if (count == 0) return EIO;
      done += count;
    }
    at += static_cast<std::uint64_t>(got);
  }
  return 0;
}

int replaceContent(const std::string& path, const channel::WriteFile& request,
                   const Spool& content) {
  if (int error = makeParents(path); error != 0) return error;
  mode_t mode = request.mode ? static_cast<mode_t>(*request.mode) : 0644;
  Fd file;
  struct stat status {};
  if (int error = openJudged(path, O_WRONLY | O_CREAT, mode, file, status); error != 0)
    return error;
  // Narrowed before the first byte and set exactly after the last: a write clears setuid and
  // setgid.
  if (request.mode && ::fchmod(file.get(), mode & status.st_mode & 0777) != 0) return errno;
  if (S_ISREG(status.st_mode) && ::ftruncate(file.get(), 0) != 0) return errno;
  if (int error = copyTo(file.get(), content); error != 0) return error;
  if (request.mode && ::fchmod(file.get(), mode) != 0) return errno;
  return 0;
}

// Runs `operation` on the path that the actor means, as the actor.
template <typename Operation>
FileOutcome asActor(const Actor& actor, const std::string& verb, const std::string& path,
                    Operation operation) {
  FileIdentity identity(actor);
  FileOutcome outcome;
  if (!identity.assumed()) {
    outcome.error = EIO;
    outcome.text = verb + " " + path + ": cannot act as user " + actor.user->name;
  } else {
    outcome.error = operation(absolutePath(path, actor));
    if (outcome.error != 0) outcome.text = errnoText(verb + " " + path, outcome.error);
  }
  outcome.threadUsable = identity.restore();
  return outcome;
}

}  // namespace

FileOutcome readFile(const channel::ReadFile& request, const Actor& actor, Spool& content,
                     bool& truncated) {
  auto limit =
      request.maxBytes ? static_cast<std::uint64_t>(*request.maxBytes) : channel::DEFAULT_BULK_CAP;
  content = Spool(READ_IN_MEMORY);
  truncated = false;
  return asActor(actor, "read_file", request.path, [&](const std::string& path) {
    Fd file;
    struct stat status {};
    if (int error = openJudged(path, O_RDONLY, 0, file, status); error != 0) return error;
    return readUpTo(file.get(), limit, content, truncated);
  });
}

FileOutcome writeFile(const channel::WriteFile& request, const Actor& actor, const Spool& content) {
  return asActor(actor, "write_file", request.path, [&](const std::string& path) {
    return content.error() != 0 ? content.error() : replaceContent(path, request, content);
  });
}

}  // namespace cordon::guest
