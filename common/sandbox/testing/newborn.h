#pragma once

#include <sys/types.h>

// The state of life in which a launcher hands a service over, for tests of what the service makes
// of it. Root only.
namespace cordon::sandbox::testing {

constexpr uid_t NEWBORN_UID = 64999;
constexpr gid_t NEWBORN_GID = 64998;

// What the launcher left to do, or did wrong.
struct Birth {
  bool keepsGroup = false;        // one supplementary group
  bool keepsCapabilities = true;  // all of them, so that the service itself has to give them up
  bool keepsBounding = true;      // only the bounding set has something in it
  bool hasEmptyNetwork = true;
};

// Turns the calling process, which is root's, into one that an unprivileged service begins its life
// as. Exits with 99 if it cannot.
void becomeNewborn(const Birth& birth);

}  // namespace cordon::sandbox::testing
