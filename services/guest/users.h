// Who is who in this guest, read from /etc/passwd and /etc/group.
//
// The files and not NSS: a static binary cannot load NSS modules, and an agent that stands between
// the host and the guest should not run a guest's resolver plug-ins.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace cordon::guest {

struct User {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::string home;
  std::string shell;
  std::vector<gid_t>
      groups;  // the primary one first, then each group that lists the name; each once
};

class UserDatabase {
 public:
  explicit UserDatabase(std::string passwd = "/etc/passwd", std::string group = "/etc/group")
      : passwdPath(std::move(passwd)), groupPath(std::move(group)) {}

  // The first well-formed line that matches, as getpwnam and getpwuid do. Read anew at each call:
  // ranges add users.
  [[nodiscard]] std::optional<User> byName(std::string_view name) const;
  [[nodiscard]] std::optional<User> byUid(uid_t uid) const;

 private:
  template <typename Matches>
  std::optional<User> find(Matches matches) const;
  [[nodiscard]] std::vector<gid_t> groupsOf(const User& user) const;

  std::string passwdPath;
  std::string groupPath;
};

}  // namespace cordon::guest
