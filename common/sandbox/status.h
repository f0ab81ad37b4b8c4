#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace cordon::sandbox {

// What /proc/<pid>/status says about a process's identity and confinement (proc(5)).
struct Status {
  std::vector<std::uint64_t> uids;    // real, effective, saved, file system
  std::vector<std::uint64_t> gids;    // the same
  std::vector<std::uint64_t> groups;  // supplementary
  std::vector<std::uint64_t> pids;    // NSpid: from the reader's pid namespace inwards
  std::uint64_t inheritable = 0;      // capability sets as bit masks
  std::uint64_t permitted = 0;
  std::uint64_t effective = 0;
  std::uint64_t bounding = 0;
  std::uint64_t ambient = 0;
  std::uint64_t noNewPrivs = 0;
  std::uint64_t seccomp = 0;  // 2: filters
  std::uint64_t filters = 0;  // how many
};

// Nothing if a line that is needed is missing or malformed: a kernel that does not say is one that
// cannot be checked.
std::optional<Status> parseStatus(std::string_view text);

}  // namespace cordon::sandbox
