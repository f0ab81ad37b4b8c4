#include "common/log/log.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <stdexcept>
#include <sys/epoll.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>

#include "common/log/escape.h"

namespace cordon::log {
namespace {

constexpr std::size_t MAX_EVENT = 64;
constexpr std::size_t MAX_SERVICE = 64;
constexpr std::string_view CUT = " ~";
constexpr std::string_view LOST = " lost_lines=";
// What the sink puts around an event and its fields at most: time or priority, level and name with
// a space each, the count of lost lines in its 20 digits, the newline.
constexpr std::size_t MAX_FRAME = std::string_view("2026-01-01T00:00:00.000Z error ").size() +
                                  MAX_SERVICE + 1 + LOST.size() + 20 + 1;
constexpr std::size_t MAX_TEXT = MAX_LINE - MAX_FRAME;

spdlog::level::level_enum toSpdlog(Level level) {
  switch (level) {
    case Level::DEBUG:
      return spdlog::level::debug;
    case Level::INFO:
      return spdlog::level::info;
    case Level::WARN:
      return spdlog::level::warn;
    case Level::ERROR:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::string_view levelWord(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::debug:
      return "debug";
    case spdlog::level::info:
      return "info";
    case spdlog::level::warn:
      return "warn";
    default:
      return "error";
  }
}

// sd-daemon(3): the priority of a line on standard error.
std::string_view journalPrefix(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::debug:
      return "<7>";
    case spdlog::level::info:
      return "<6>";
    case spdlog::level::warn:
      return "<4>";
    default:
      return "<3>";
  }
}

// gmtime_r() reads the time zone file at its first call, which is an open() that no sandbox grants:
// so the calendar is computed.
std::string utc(std::chrono::system_clock::time_point time) {
  using namespace std::chrono;
  const auto days = floor<std::chrono::days>(time);
  const year_month_day date(days);
  const hh_mm_ss clock(floor<milliseconds>(time - days));
  std::array<char, 40> text{};
  const int size = std::snprintf(
      text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
      static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
      static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
      static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()),
      static_cast<int>(clock.subseconds().count()));
  return std::string(text.data(), static_cast<std::size_t>(size));
}

std::string checkedService(std::string_view name) {
  if (name.size() > MAX_SERVICE) throw std::invalid_argument("a service's name is too long");
  return std::string(name);
}

// Says whether a write would not wait.
class Readiness {
 public:
  explicit Readiness(int fd) {
    // The number of a closed descriptor is soon somebody else's: a line would go to a client.
    if (::fcntl(fd, F_GETFD) < 0) return;
    open = true;
    epoll = ::epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
    epoll_event wanted{.events = EPOLLOUT, .data = {.fd = fd}};
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &wanted) == 0) return;
    const int error = errno;
    ::close(epoll);
    epoll = -1;
    // A file and /dev/null make no writer wait.
    if (error != EPERM) throw std::system_error(error, std::generic_category(), "epoll_ctl");
  }
  ~Readiness() {
    if (epoll >= 0) ::close(epoll);
  }
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  [[nodiscard]] bool ready() const {
    if (epoll < 0) return open;
    epoll_event event{};
    int count = -1;
    do {
      count = ::epoll_wait(epoll, &event, 1, 0);
    } while (count < 0 && errno == EINTR);
    // A pipe without a reader (EPOLLERR) takes everything, with SIGPIPE.
    return count == 1 && (event.events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == EPOLLOUT;
  }

 private:
  bool open = false;
  int epoll = -1;
};

}  // namespace

class Log::Sink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  Sink(int outputFd, bool journalForm) : fd(outputFd), journal(journalForm), readiness(outputFd) {}
  [[nodiscard]] std::uint64_t lostLines() const { return lost; }

 protected:
  // The message is at most MAX_TEXT bytes: Log::write() sees to it.
  void sink_it_(const spdlog::details::log_msg& message) override {
    std::string line;
    if (journal) {
      line += journalPrefix(message.level);
    } else {
      line += utc(message.time);
      line += ' ';
    }
    line += levelWord(message.level);
    line += ' ';
    line.append(message.logger_name.data(), message.logger_name.size());
    line += ' ';
    line.append(message.payload.data(), message.payload.size());
    if (lost != told) {
      line += LOST;
      line += std::to_string(lost - told);
    }
    line += '\n';
    if (passes(line)) {
      told = lost;
    } else {
      ++lost;
    }
  }
  void flush_() override {}

 private:
  [[nodiscard]] bool passes(const std::string& line) const {
    if (!readiness.ready()) return false;
    ssize_t written = -1;
    do {
      written = ::write(fd, line.data(), line.size());
    } while (written < 0 && errno == EINTR);
    return written == static_cast<ssize_t>(line.size());
  }

  int fd;
  bool journal;
  Readiness readiness;
  std::uint64_t lost = 0;
  std::uint64_t told = 0;  // of `lost`, said in a line that passed
};

Log::Log(std::string_view service, int fd, Level least, bool journal)
    : sink(std::make_shared<Sink>(fd, journal)),
      logger(std::make_shared<spdlog::logger>(checkedService(service), sink)) {
  logger->set_level(toSpdlog(least));
}
Log::Log(std::shared_ptr<Sink> lineSink, std::shared_ptr<spdlog::logger> lineLogger,
         std::string extraFields)
    : sink(std::move(lineSink)), logger(std::move(lineLogger)), extra(std::move(extraFields)) {}
Log::~Log() = default;
Log::Log(Log&&) noexcept = default;
Log& Log::operator=(Log&&) noexcept = default;

Log Log::forService(std::string_view service) {
  return Log(service, STDERR_FILENO, Level::INFO, std::getenv("JOURNAL_STREAM") != nullptr);
}

Log Log::forRequest(std::string_view id) const {
  std::string fields = " request=";
  appendValue(fields, id);
  return Log(sink, logger, std::move(fields));
}

void Log::write(Level level, std::string_view event, std::initializer_list<Field> fields) const {
  const auto spdlogLevel = toSpdlog(level);
  if (!logger->should_log(spdlogLevel)) return;
  std::string line;
  appendValue(line, event, MAX_EVENT);
  line += extra;
  for (const Field& field : fields) {
    const std::size_t before = line.size();
    line += ' ';
    line += field.key;
    line += '=';
    std::visit(
        [&line](auto value) {
          if constexpr (std::is_same_v<decltype(value), std::string_view>) {
            appendValue(line, value);
          } else if constexpr (std::is_same_v<decltype(value), bool>) {
            line += value ? "true" : "false";
          } else {
            line += std::to_string(value);
          }
        },
        field.value);
    // A line is never cut within a field, where half a value could pass for another.
    if (line.size() > MAX_TEXT - CUT.size()) {
      line.resize(before);
      line += CUT;
      break;
    }
  }
  // The overload without a format: what stands in braces in a value is not a directive.
  logger->log(spdlogLevel, spdlog::string_view_t(line.data(), line.size()));
}

void Log::debug(std::string_view event, std::initializer_list<Field> fields) const {
  write(Level::DEBUG, event, fields);
}
void Log::info(std::string_view event, std::initializer_list<Field> fields) const {
  write(Level::INFO, event, fields);
}
void Log::warn(std::string_view event, std::initializer_list<Field> fields) const {
  write(Level::WARN, event, fields);
}
void Log::error(std::string_view event, std::initializer_list<Field> fields) const {
  write(Level::ERROR, event, fields);
}

std::uint64_t Log::lostLines() const {
  return sink->lostLines();
}

}  // namespace cordon::log
