#include "services/guest/users.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <fcntl.h>
#include <limits>
#include <unistd.h>

#include "services/guest/fd.h"

namespace cordon::guest {
namespace {

// The kernel takes no more groups a process (NGROUPS_MAX).
constexpr std::size_t MAX_GROUPS = 65536;
// A user database larger than this is no user database.
constexpr std::size_t MAX_DATABASE = 16u << 20;

std::string readDatabase(const std::string& path) {
  std::string text;
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return text;
  std::array<char, 4096> piece;
  while (text.size() < MAX_DATABASE) {
    ssize_t count = ::read(file.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
  return text;
}

std::string_view cut(std::string_view& text, char separator) {
  std::size_t at = text.find(separator);
  std::string_view head = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view{} : text.substr(at + 1);
  return head;
}

// The id that means "no change" to the kernel is no one's.
std::optional<std::uint32_t> idNumber(std::string_view text) {
  std::uint32_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (number == std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return number;
}

std::optional<User> parsePasswdLine(std::string_view line) {
  if (std::count(line.begin(), line.end(), ':') != 6) return std::nullopt;
  User user;
  user.name = cut(line, ':');
  cut(line, ':');
  auto uid = idNumber(cut(line, ':'));
  auto gid = idNumber(cut(line, ':'));
  cut(line, ':');
  user.home = cut(line, ':');
  user.shell = line;
  if (user.name.empty() || !uid || !gid) return std::nullopt;
  user.uid = *uid;
  user.gid = *gid;
  return user;
}

}  // namespace

template <typename Matches>
std::optional<User> UserDatabase::find(Matches matches) const {
  std::string text = readDatabase(passwdPath);
  std::string_view rest = text;
  while (!rest.empty()) {
    auto user = parsePasswdLine(cut(rest, '\n'));
    if (!user || !matches(*user)) continue;
    user->groups = groupsOf(*user);
    return user;
  }
  return std::nullopt;
}

std::vector<gid_t> UserDatabase::groupsOf(const User& user) const {
  std::vector<gid_t> groups{user.gid};
  std::string text = readDatabase(groupPath);
  std::string_view rest = text;
  while (!rest.empty() && groups.size() < MAX_GROUPS) {
    std::string_view line = cut(rest, '\n');
    if (std::count(line.begin(), line.end(), ':') != 3) continue;
    cut(line, ':');
    cut(line, ':');
    auto gid = idNumber(cut(line, ':'));
    if (!gid || std::find(groups.begin(), groups.end(), *gid) != groups.end()) continue;
    while (!line.empty()) {
      if (cut(line, ',') != user.name) continue;
      groups.push_back(*gid);
      break;
    }
  }
  return groups;
}

std::optional<User> UserDatabase::byName(std::string_view name) const {
  return find([&](const User& user) { return user.name == name; });
}

std::optional<User> UserDatabase::byUid(uid_t uid) const {
  return find([&](const User& user) { return user.uid == uid; });
}

}  // namespace cordon::guest
