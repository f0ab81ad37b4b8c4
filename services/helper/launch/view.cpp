#include "services/helper/launch/view.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <utility>

#include "services/helper/launch/error.h"

namespace cordon::launch {
namespace {

constexpr std::string_view STEP = "enter-view";

void makeParents(const std::string& target) {
  for (std::size_t slash = target.find('/', 1); slash != std::string::npos;
       slash = target.find('/', slash + 1)) {
    std::string folder = target.substr(1, slash - 1);
    if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) failStep(STEP, "/" + folder);
  }
}

// Relative to the new root, which is the current folder.
void attach(const Bind& bind) {
  makeParents(bind.target);
  std::string place = bind.target.substr(1);
  if (bind.isDirectory) {
    if (mkdir(place.c_str(), 0755) != 0 && errno != EEXIST) failStep(STEP, bind.target);
  } else {
    UniqueFd file(open(place.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444));
    if (!file) failStep(STEP, bind.target);
  }
  if (move_mount(bind.tree.get(), "", AT_FDCWD, place.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    failStep(STEP, bind.target);
  }
}

void mountAt(const char* type, const char* place, unsigned long flags, const char* data) {
  if (mkdir(place, 0755) != 0 && errno != EEXIST) failStep(STEP, place);
  if (mount(type, place, type, flags, data) != 0) failStep(STEP, place);
}

void lock(const char* place, std::uint64_t attributes) {
  mount_attr attribute{};
  attribute.attr_set = attributes;
  if (mount_setattr(AT_FDCWD, place, 0, &attribute, sizeof attribute) != 0) failStep(STEP, place);
}

}  // namespace

Bind bindOf(const UniqueFd& source, std::string target, Execute execute) {
  struct stat status {};
  if (fstat(source.get(), &status) != 0) failStep("clone-mount", target);
  Bind bind;
  bind.tree =
      UniqueFd(open_tree(source.get(), "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH));
  if (!bind.tree) failStep("clone-mount", target);
  mount_attr attribute{};
  attribute.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (execute == Execute::NO) attribute.attr_set |= MOUNT_ATTR_NOEXEC;
  attribute.propagation = MS_PRIVATE;
  if (mount_setattr(bind.tree.get(), "", AT_EMPTY_PATH, &attribute, sizeof attribute) != 0) {
    failStep("clone-mount", target);
  }
  bind.isDirectory = S_ISDIR(status.st_mode);
  bind.target = std::move(target);
  return bind;
}

void addPath(View& view, const std::string& path, Execute execute) {
  UniqueFd source(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!source) failStep("clone-mount", path);
  view.binds.push_back(bindOf(source, path, execute));
}

void addLibraries(View& view) {
  // Not all of /usr/lib: it holds programs too, and a cell has nothing to execute but its own.
  addPath(view, "/usr/lib/x86_64-linux-gnu", Execute::YES);
  addPath(view, "/usr/lib64", Execute::YES);
  addPath(view, "/etc/ld.so.cache", Execute::NO);
}

void addNull(View& view) {
  view.nodes.push_back({"null", makedev(1, 3), 0, 0666});
}

void enterView(const View& view) {
  // Nothing of what follows may reach the host's mount table.
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) failStep(STEP, "/");
  // Any folder will do as the place of the new root: the old one goes away with all that it covers.
  if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
            "mode=0755,size=64k,nr_inodes=256") != 0 ||
      chdir("/tmp") != 0) {
    failStep(STEP, "the new root");
  }
  umask(0022);
  for (const Bind& bind : view.binds) attach(bind);
  if (symlink("usr/lib", "lib") != 0 || symlink("usr/lib64", "lib64") != 0) failStep(STEP, "/lib");

  mountAt("tmpfs", "dev", MS_NOSUID | MS_NOEXEC, "mode=0755,size=4k,nr_inodes=16");
  for (const Node& node : view.nodes) {
    std::string place = "dev/" + node.name;
    if (mknod(place.c_str(), S_IFCHR | node.mode, node.device) != 0 ||
        chmod(place.c_str(), node.mode) != 0 || chown(place.c_str(), node.owner, node.owner) != 0) {
      failStep(STEP, "/" + place);
    }
  }
  lock("dev", MOUNT_ATTR_RDONLY);
  if (view.proc) {
    mountAt("proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY,
            "hidepid=invisible,subset=pid");
  }

  // The old root is stacked under the new one and then detached: no path leads back.
  if (syscall(SYS_pivot_root, ".", ".") != 0) failStep(STEP, "pivot_root");
  if (umount2(".", MNT_DETACH) != 0 || chdir("/") != 0) failStep(STEP, "the old root");
  lock("/", MOUNT_ATTR_RDONLY);
}

}  // namespace cordon::launch
