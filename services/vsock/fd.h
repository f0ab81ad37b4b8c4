// A descriptor and its owner.
#pragma once

#include <unistd.h>
#include <utility>

namespace cordon::vsock {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int number) : value(number) {}
  Fd(Fd&& other) noexcept : value(std::exchange(other.value, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      value = std::exchange(other.value, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const { return value; }
  explicit operator bool() const { return value >= 0; }
  void reset() {
    if (value >= 0) ::close(value);
    value = -1;
  }

 private:
  int value = -1;
};

}  // namespace cordon::vsock
