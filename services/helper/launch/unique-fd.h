// An owned file descriptor.
#pragma once

#include <unistd.h>
#include <utility>

namespace cordon::launch {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int owned) : fd(owned) {}
  ~UniqueFd() { reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd = std::exchange(other.fd, -1);
    }
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;

  // Valid as long as this object; never to be closed by the caller.
  [[nodiscard]] int get() const { return fd; }
  explicit operator bool() const { return fd >= 0; }
  [[nodiscard]] int release() { return std::exchange(fd, -1); }
  void reset() {
    if (fd >= 0) close(std::exchange(fd, -1));
  }

 private:
  int fd = -1;
};

}  // namespace cordon::launch
