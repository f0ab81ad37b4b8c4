// Ownership of a file descriptor.
#pragma once

#include <unistd.h>
#include <utility>

namespace cordon::guest {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int descriptor) : raw(descriptor) {}
  Fd(Fd&& other) noexcept : raw(std::exchange(other.raw, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      raw = std::exchange(other.raw, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }

  [[nodiscard]] int get() const { return raw; }
  [[nodiscard]] bool valid() const { return raw >= 0; }
  void reset() {
    if (raw >= 0) ::close(std::exchange(raw, -1));
  }

 private:
  int raw = -1;
};

}  // namespace cordon::guest
