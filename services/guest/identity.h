// As whom the agent acts.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

#include "services/guest/diag-ring.h"
#include "services/guest/users.h"

namespace cordon::guest {

// Who runs a command or touches a file.
struct Actor {
  // Absent where the agent's own uid has no line in /etc/passwd.
  std::optional<User> user;
  // The agent is root and must become `user` first.
  bool change = false;

  // The user's home, "/" where there is none.
  [[nodiscard]] std::string home() const;
};

class Identities {
 public:
  Identities(DiagRing& ring, UserDatabase database);

  // `agent` if the agent runs as root and that user exists, else the agent itself, with an
  // `agent-user-unavailable` entry whenever that begins to be so.
  Actor standard();
  // The user of that name; nothing if there is none, or if the agent may not become that user.
  [[nodiscard]] std::optional<Actor> named(const std::string& name) const;

 private:
  DiagRing& diag;
  UserDatabase users;
  uid_t own;
  std::atomic<bool> warned = false;
};

// While it lives, the calling thread touches files as `actor`: its group alone, its gid, its uid.
// Only this thread: the wrappers of libc would change every thread of the process. Source:
// protocols/channel.md §15.2.
class FileIdentity {
 public:
  explicit FileIdentity(const Actor& actor);
  FileIdentity(const FileIdentity&) = delete;
  FileIdentity& operator=(const FileIdentity&) = delete;
  ~FileIdentity();

  // The thread acts as `actor`. If not, it must not touch a file.
  [[nodiscard]] bool assumed() const { return taken; }
  // Gives the identity back. False: the thread is neither one nor the other and must end.
  [[nodiscard]] bool restore();

 private:
  bool changed = false;
  bool taken = true;
  std::vector<gid_t> ownGroups;
  gid_t ownGid = 0;
  uid_t ownUid = 0;
};

}  // namespace cordon::guest
