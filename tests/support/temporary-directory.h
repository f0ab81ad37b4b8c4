// A directory of a test's own, short enough for the path of a Unix socket, gone with the test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace cordon::tests {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = "/tmp/cordon-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path = name;
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
