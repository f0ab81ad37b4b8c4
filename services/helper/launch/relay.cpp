#include "services/helper/launch/relay.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include "services/helper/launch/error.h"
#include "services/helper/launch/log.h"

namespace cordon::launch {
namespace {

constexpr std::size_t PIECE = 64u << 10;

std::int64_t currentMinute() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec / 60;
}

}  // namespace

Pipe makeRelayPipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) failStep("make-pipe", "output");
  Pipe made{UniqueFd(ends[0]), UniqueFd(ends[1])};
  // The reader's flag alone: a program must not find its own output non-blocking.
  if (fcntl(made.reader.get(), F_SETFL, O_NONBLOCK) != 0) failStep("make-pipe", "output");
  return made;
}

ConsoleRelay::ConsoleRelay(UniqueFd source, UniqueFd file, std::uint64_t limit)
    : reader(std::move(source)),
      target(std::move(file)),
      null(open("/dev/null", O_WRONLY | O_CLOEXEC)),
      left(limit) {
  if (!null) failStep("open-console", "/dev/null");
}

bool ConsoleRelay::pump() {
  bool keeping = left > 0;
  std::size_t most = keeping ? std::min<std::uint64_t>(PIECE, left) : PIECE;
  ssize_t moved = splice(reader.get(), nullptr, keeping ? target.get() : null.get(), nullptr, most,
                         SPLICE_F_NONBLOCK);
  if (moved == 0) return false;
  if (moved < 0) {
    if (errno == EAGAIN || errno == EINTR) return true;
    if (!keeping) failStep("copy-console", "/dev/null");
    // A full disk must not stop the guest; what is lost is said.
    warn(std::string("console: cannot be written any more: ") + strerrorname_np(errno));
    left = 0;
    return true;
  }
  if (keeping) {
    left -= static_cast<std::uint64_t>(moved);
    if (left == 0) warn("console: the limit is reached; the rest is dropped");
  }
  return true;
}

LogRelay::LogRelay(std::string programName, UniqueFd source, int sinkFd)
    : name(std::move(programName)), reader(std::move(source)), sink(sinkFd) {}

void LogRelay::emit(std::string_view text) {
  std::int64_t now = currentMinute();
  if (now != minute) {
    minute = now;
    allowance = LOG_BURST;
    muted = false;
  }
  std::string line;
  if (text.size() > allowance) {
    if (muted) return;
    muted = true;
    line = name + ": (more output is dropped for the rest of this minute)\n";
  } else {
    allowance -= text.size();
    line = name + ": " + escapeForTerminal(text) + "\n";
  }
  [[maybe_unused]] ssize_t ignored = write(sink, line.data(), line.size());
}

bool LogRelay::pump() {
  std::array<char, 4096> buffer;
  ssize_t size = read(reader.get(), buffer.data(), buffer.size());
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  if (size == 0) {
    if (!pending.empty()) emit(std::exchange(pending, {}));
    return false;
  }
  for (char c : std::string_view(buffer.data(), static_cast<std::size_t>(size))) {
    if (c != '\n') pending += c;
    if (c == '\n' || pending.size() >= LOG_LINE_LIMIT) emit(std::exchange(pending, {}));
  }
  return true;
}

std::string escapeForTerminal(std::string_view text) {
  static constexpr std::string_view DIGITS = "0123456789abcdef";
  std::string escaped;
  escaped.reserve(text.size());
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      escaped += "\\\\";
    } else if (c == '\t' || (byte >= 0x20 && byte < 0x7f)) {
      escaped += c;
    } else {
      escaped += "\\x";
      escaped += DIGITS[byte >> 4];
      escaped += DIGITS[byte & 15];
    }
  }
  return escaped;
}

}  // namespace cordon::launch
