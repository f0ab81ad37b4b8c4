// Lines of key=value on standard error, for the journal. Values are numbers and names from this
// program: nothing that a guest or a front end chose is ever printed as text. A flood of one peer's
// making is cut and counted.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace cordon::vsock {

struct LogValue {
  LogValue(std::string_view text) : word(text) {}  // NOLINT(google-explicit-constructor)
  LogValue(const char* text) : word(text) {}       // NOLINT(google-explicit-constructor)
  template <typename T>
  requires std::is_integral_v<T> LogValue(T value)
      : number(static_cast<std::int64_t>(value)),
        numeric(true) {}  // NOLINT(google-explicit-constructor)

  std::string_view word;
  std::int64_t number = 0;
  bool numeric = false;
};

class Log {
 public:
  static constexpr unsigned BURST = 20;      // lines at once
  static constexpr unsigned PER_SECOND = 5;  // lines after that

  explicit Log(int descriptor = 2) : fd(descriptor) {}
  using Fields = std::initializer_list<std::pair<std::string_view, LogValue>>;
  // At most BURST lines, then PER_SECOND; the next line that passes says how many did not.
  void line(std::string_view event, Fields fields = {});
  // For what happens once in the life of the process: always passes.
  void always(std::string_view event, Fields fields = {});

 private:
  void write(std::string_view event, const Fields& fields);

  int fd;
  unsigned tokens = BURST;
  std::uint64_t suppressed = 0;
  std::chrono::steady_clock::time_point refilled{};
};

}  // namespace cordon::vsock
