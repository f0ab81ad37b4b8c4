#include "common/sandbox/testing/newborn.h"

#include <array>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cordon::sandbox::testing {
namespace {

void require(bool holds) {
  if (!holds) {
    _exit(99);
  }
}

void raiseCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  require(syscall(SYS_capget, &header, sets.data()) == 0);
  for (auto& set : sets) {
    set.effective = set.permitted;
  }
  require(syscall(SYS_capset, &header, sets.data()) == 0);
}

void emptyBounding() {
  for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0;
       ++capability) {
    require(prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0);
  }
}

}  // namespace

void becomeNewborn(const Birth& birth) {
  if (birth.hasEmptyNetwork) {
    require(unshare(CLONE_NEWNET) == 0);
  }
  const gid_t extra = NEWBORN_GID - 1;
  require(setgroups(birth.keepsGroup ? 1 : 0, &extra) == 0);
  if (!birth.keepsBounding) {
    emptyBounding();
  }
  require(setresgid(NEWBORN_GID, NEWBORN_GID, NEWBORN_GID) == 0);
  if (birth.keepsCapabilities) {
    require(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
  }
  require(setresuid(NEWBORN_UID, NEWBORN_UID, NEWBORN_UID) == 0);
  if (birth.keepsCapabilities) {
    raiseCapabilities();
  }
}

}  // namespace cordon::sandbox::testing
