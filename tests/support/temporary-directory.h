// A directory of a test's own, short enough for the path of a Unix socket, gone with the test.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/residue.h"

namespace cordon::tests {

class TemporaryDirectory {
 public:
  TemporaryDirectory() : path(makeOwnedDirectory("cordon-test")) {
    // Guests of other uids come in here.
    std::filesystem::permissions(path, std::filesystem::perms(0755));
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] std::string operator/(const std::string& name) const { return path + "/" + name; }
  std::string path;
};

}  // namespace cordon::tests
