// Takes what a cell writes, so that it never blocks on a full pipe, and bounds what of it is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "services/helper/launch/unique-fd.h"

namespace cordon::launch {

inline constexpr std::uint64_t CONSOLE_LIMIT = 16u
                                               << 20;  // bytes of a guest's console that are kept
inline constexpr std::size_t LOG_LINE_LIMIT = 2048;    // bytes of a line of a program's output
inline constexpr std::uint64_t LOG_BURST =
    256u << 10;  // bytes of output that are let through in a minute

struct Pipe {
  UniqueFd reader;  // non-blocking
  UniqueFd writer;
};
Pipe makeRelayPipe();

class Relay {
 public:
  virtual ~Relay() = default;
  [[nodiscard]] virtual const UniqueFd& fd() const = 0;
  // The descriptor is readable. False when the other side is closed.
  virtual bool pump() = 0;
};

// Copies the first CONSOLE_LIMIT bytes to a file and drops the rest, without ever having them in
// its memory: the console is the guest's, and this process is root.
class ConsoleRelay : public Relay {
 public:
  // file: open for writing.
  ConsoleRelay(UniqueFd source, UniqueFd file, std::uint64_t limit = CONSOLE_LIMIT);
  [[nodiscard]] const UniqueFd& fd() const override { return reader; }
  bool pump() override;

 private:
  UniqueFd reader;
  UniqueFd target;
  UniqueFd null;
  std::uint64_t left;
};

// Writes a program's output, line by line with its name before, to `sink`; control and non-ASCII
// bytes as \xNN, so that no program can speak to the operator's terminal; at most LOG_BURST bytes a
// minute.
class LogRelay : public Relay {
 public:
  LogRelay(std::string programName, UniqueFd source, int sinkFd);
  [[nodiscard]] const UniqueFd& fd() const override { return reader; }
  bool pump() override;

 private:
  void emit(std::string_view text);
  std::string name;
  UniqueFd reader;
  int sink;
  std::string pending;  // the line so far
  std::uint64_t allowance = LOG_BURST;
  std::int64_t minute = 0;
  bool muted = false;
};

// Printable ASCII and tabs as they are, a backslash doubled, everything else as \xNN.
std::string escapeForTerminal(std::string_view text);

}  // namespace cordon::launch
