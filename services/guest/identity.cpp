#include "services/guest/identity.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace cordon::guest {
namespace {

constexpr const char* STANDARD_USER = "agent";

// setfsuid and setfsgid report nothing but the id before the call; asking for an impossible id
// reads the current one.
bool setThreadFsUid(uid_t uid) {
  ::syscall(SYS_setfsuid, uid);
  return static_cast<uid_t>(::syscall(SYS_setfsuid, -1)) == uid;
}

bool setThreadFsGid(gid_t gid) {
  ::syscall(SYS_setfsgid, gid);
  return static_cast<gid_t>(::syscall(SYS_setfsgid, -1)) == gid;
}

bool setThreadGroups(const std::vector<gid_t>& groups) {
  return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

}  // namespace

std::string Actor::home() const {
  return user && !user->home.empty() ? user->home : "/";
}

Identities::Identities(DiagRing& ring, UserDatabase database)
    : diag(ring), users(std::move(database)), own(::geteuid()) {}

Actor Identities::standard() {
  if (own == 0) {
    if (auto user = users.byName(STANDARD_USER)) {
      warned = false;
      return {std::move(user), true};
    }
  }
  if (!warned.exchange(true)) {
    diag.warn("agent-user-unavailable",
              own == 0 ? "there is no user 'agent': acting as root"
                       : "not running as root: acting as the agent's own user");
  }
  return {users.byUid(own), false};
}

std::optional<Actor> Identities::named(const std::string& name) const {
  auto user = users.byName(name);
  if (!user) return std::nullopt;
  if (own == 0) return Actor{std::move(user), true};
  if (user->uid != own) return std::nullopt;
  return Actor{std::move(user), false};
}

FileIdentity::FileIdentity(const Actor& actor) {
  if (!actor.change) return;
  taken = false;
  ownUid = ::geteuid();
  ownGid = ::getegid();
  int count = ::getgroups(0, nullptr);
  if (count < 0) return;
  ownGroups.resize(static_cast<std::size_t>(count));
  count = ::getgroups(count, ownGroups.data());
  if (count < 0) return;
  ownGroups.resize(static_cast<std::size_t>(count));
  changed = true;
  taken = setThreadGroups({actor.user->gid}) && setThreadFsGid(actor.user->gid) &&
          setThreadFsUid(actor.user->uid);
}

bool FileIdentity::restore() {
  if (!changed) return true;
  changed = false;
  taken = false;
  // Every step is tried: the more of it is undone, the less the thread can still do wrong before it
  // ends.
  bool uidBack = setThreadFsUid(ownUid);
  bool gidBack = setThreadFsGid(ownGid);
  bool groupsBack = setThreadGroups(ownGroups);
  return uidBack && gidBack && groupsBack;
}

FileIdentity::~FileIdentity() {
  (void)restore();
}

}  // namespace cordon::guest
