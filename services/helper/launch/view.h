// What a cell sees of the file system: an empty tmpfs with a few read-only binds, and nothing else.
//
// Sources are cloned as detached mounts in the host's mount namespace (open_tree), because a cell's
// own namespace no longer has their paths; the cell attaches them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "services/helper/launch/unique-fd.h"

namespace cordon::launch {

struct Bind {
  UniqueFd tree;  // detached, read-only
  std::string target;
  bool isDirectory = true;
};

struct Node {
  std::string name;  // below /dev
  dev_t device = 0;
  uid_t owner = 0;
  mode_t mode = 0;
};

struct View {
  std::vector<Bind> binds;
  std::vector<Node> nodes;
  bool proc = false;  // /proc of the cell's own pid namespace, other users' processes hidden
};

enum class Execute : std::uint8_t { NO, YES };

// Read-only, nosuid, nodev, and noexec unless Execute::YES. `source` is what an open descriptor
// names.
Bind bindOf(const UniqueFd& source, std::string target, Execute execute);

// The loader, the shared libraries and their cache: what every program of a cell needs.
void addLibraries(View& view);
// `path` of the host at the same place.
void addPath(View& view, const std::string& path, Execute execute);
// /dev/null; cells have no other device unless said.
void addNull(View& view);

// In a process with a mount namespace of its own: replaces the root by `view` and locks it
// read-only.
void enterView(const View& view);

}  // namespace cordon::launch
