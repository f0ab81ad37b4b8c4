// One line an event on standard error, which journald takes: time in UTC, level, event, key=value
// fields.
//
// Nothing here opens a file, asks for the local time or allocates by an attacker's length, so it
// works the same before and inside a sandbox. Every value is escaped and cut (escape.h). Not for
// use from several threads at once.
//
// A reader that does not read must not stop a service. Each line is therefore written only when an
// epoll instance, which watches nothing but the log's descriptor, says that it would not wait: a
// pipe then has a free page, and a line is at most that; a stream socket has three quarters of its
// buffer free. O_NONBLOCK would be simpler, but it belongs to the open file description, which a
// terminal, a shell's pipe and a child share, and whose other users did not ask for it; opening the
// pipe anew for a description of our own fails where another uid made it (cordon-launch does).
// epoll_wait is granted to every service with a loop: no policy grows. What remains: of several
// writers to one pipe, one may fill it between another's question and its write, and that write
// waits. cordon-launch and systemd give each service a pipe or socket of its own.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include <climits>

namespace spdlog {
class logger;
}

namespace cordon::log {

// Longest line, in bytes with its newline: what a pipe takes whole and unmixed with other writers'
// (pipe(7)). Fields that do not fit are left out, the first of them marked by " ~" in its place.
inline constexpr std::size_t MAX_LINE = PIPE_BUF;

enum class Level : std::uint8_t { DEBUG, INFO, WARN, ERROR };

// key: a literal of [a-z0-9_]; the value is copied into the line before the call returns.
struct Field {
  using Value = std::variant<std::int64_t, std::uint64_t, bool, std::string_view>;

  Field(std::string_view fieldKey, std::string_view text) : key(fieldKey), value(text) {}
  Field(std::string_view fieldKey, const char* text)
      : key(fieldKey), value(std::string_view(text)) {}
  Field(std::string_view fieldKey, const std::string& text)
      : key(fieldKey), value(std::string_view(text)) {}
  Field(std::string_view fieldKey, bool flag) : key(fieldKey), value(flag) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Field(std::string_view fieldKey, T number)
      : key(fieldKey), value(widen(number)) {}

  std::string_view key;
  Value value;

 private:
  template <typename T>
  static Value widen(T number) {
    if constexpr (std::is_signed_v<T>) {
      return static_cast<std::int64_t>(number);
    } else {
      return static_cast<std::uint64_t>(number);
    }
  }
};

class Log {
 public:
  // service: the binary's name, at most 64 bytes. fd: where lines go, by one write(2) each; not
  // closed. A line that cannot be written at once (full pipe, no reader; a descriptor that was
  // closed already here) is lost and counted; the next that passes ends with lost_lines=<lines lost
  // since the one before it>. journal: lines begin with journald's priority prefix ("<6>") and
  // carry no time of their own. Throws std::system_error where no descriptor is left for the epoll
  // instance, std::invalid_argument where the name is too long.
  Log(std::string_view service, int fd, Level least, bool journal);
  ~Log();
  Log(Log&&) noexcept;
  Log& operator=(Log&&) noexcept;

  // As a service under systemd wants it: standard error, INFO, the journal's form where
  // $JOURNAL_STREAM is set.
  static Log forService(std::string_view service);

  // A log whose every line carries request=<id> as well: one id from the command line to the guest.
  [[nodiscard]] Log forRequest(std::string_view id) const;

  // event: a literal in the form noun.verb, at most 64 bytes.
  void write(Level level, std::string_view event, std::initializer_list<Field> fields = {}) const;
  void debug(std::string_view event, std::initializer_list<Field> fields = {}) const;
  void info(std::string_view event, std::initializer_list<Field> fields = {}) const;
  void warn(std::string_view event, std::initializer_list<Field> fields = {}) const;
  void error(std::string_view event, std::initializer_list<Field> fields = {}) const;

  // All that were lost so far.
  [[nodiscard]] std::uint64_t lostLines() const;

 private:
  class Sink;

  Log(std::shared_ptr<Sink> lineSink, std::shared_ptr<spdlog::logger> lineLogger,
      std::string extraFields);

  std::shared_ptr<Sink> sink;
  std::shared_ptr<spdlog::logger> logger;
  std::string extra;
};

}  // namespace cordon::log
