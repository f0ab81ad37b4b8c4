// The directories under <runtime>/ranges: made for one launcher, found again after a crash, gone
// when it ends.
//
//   <runtime>            root 0711
//   <runtime>/ranges     root 0711
//   …/<rid>              root 0711; shared by the launchers of the range, the last one out removes
//   it …/<rid>/<cid>        the guest's uid : the range's parser, 02710: the device makes the
//   socket, the parser may reach it
//
// A launcher holds a lock on what it uses, so a directory that a killed launcher left is told from
// one in use.
#pragma once

#include <cstdint>
#include <string>

#include "services/helper/launch/identity.h"
#include "services/helper/launch/unique-fd.h"

namespace cordon::launch {

// Makes <runtime>/ranges/<rid> where it is missing and shares it; removes it when nobody else does.
class RangeDirectory {
 public:
  RangeDirectory(const std::string& runtimeDir, const std::string& range);
  ~RangeDirectory();
  RangeDirectory(const RangeDirectory&) = delete;
  RangeDirectory& operator=(const RangeDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return ownPath; }
  [[nodiscard]] const UniqueFd& fd() const { return directory; }

 private:
  std::string ownPath;
  UniqueFd directory;  // with a shared lock
};

// A directory of one launcher, emptied and removed with it. Throws GUEST_EXISTS where another
// launcher lives in it; takes over what a dead one left, which is told by its owner: anything else
// that has the name and is not empty is left alone (STEP_FAILED).
class OwnedDirectory {
 public:
  OwnedDirectory(const UniqueFd& parent, const std::string& name, const std::string& fullPath,
                 Identity owner, gid_t group, unsigned mode);
  ~OwnedDirectory();
  OwnedDirectory(const OwnedDirectory&) = delete;
  OwnedDirectory& operator=(const OwnedDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return ownPath; }
  [[nodiscard]] const UniqueFd& fd() const { return directory; }

 private:
  const UniqueFd& parentDirectory;  // outlives this
  std::string ownName;
  std::string ownPath;
  UniqueFd directory;  // with an exclusive lock
};

// Opens a directory of root in which nobody else may rename entries; makes it (0711) where it is
// missing, but not its parents.
UniqueFd openRootDirectory(const std::string& path);

// A Unix stream socket at <directory>/<name>, bound and listening *as* `owner`: the kernel fixes
// what SO_PEERCRED says of a listener when listen() is called. The socket's mode is 0666 less
// umask.
UniqueFd listenAs(const UniqueFd& directory, const std::string& path, const std::string& name,
                  Identity owner, gid_t group, unsigned umaskBits);

}  // namespace cordon::launch
