#include "common/log/log.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kj/debug.h>

#include "common/log/escape.h"
#include "common/log/kj-bridge.h"

namespace cordon::log {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class Pipe {
 public:
  // The writing end waits, as a service's standard error does.
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    makeReadingNonBlocking();
  }
  ~Pipe() {
    closeReading();
    ::close(ends[1]);
  }
  static Pipe ofSockets() {
    std::array<int, 2> both{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both.data()) != 0)
      throw std::runtime_error("socketpair");
    return Pipe(both);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  [[nodiscard]] int writeEnd() const { return ends[1]; }
  [[nodiscard]] std::string read() const {
    std::string text;
    std::string part(65536, '\0');
    for (;;) {
      const ssize_t size = ::read(ends[0], part.data(), part.size());
      if (size <= 0) return text;
      text.append(part, 0, static_cast<std::size_t>(size));
    }
  }
  void closeReading() {
    if (ends[0] >= 0) ::close(ends[0]);
    ends[0] = -1;
  }

 private:
  explicit Pipe(std::array<int, 2> both) : ends(both) { makeReadingNonBlocking(); }
  void makeReadingNonBlocking() const {
    if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) throw std::runtime_error("fcntl");
  }

  std::array<int, 2> ends{};
};

std::string escaped(std::string_view value, std::size_t limit = MAX_VALUE) {
  std::string out;
  appendValue(out, value, limit);
  return out;
}

TEST(Escape, LeavesPlainWordsAndQuotesTheRest) {
  EXPECT_EQ(escaped("uds:/run/x.sock"), "uds:/run/x.sock");
  EXPECT_EQ(escaped(""), "\"\"");
  EXPECT_EQ(escaped("a b"), "\"a b\"");
  EXPECT_EQ(escaped("a=b"), "\"a=b\"");
  EXPECT_EQ(escaped("say \"x\\\""), "\"say \\\"x\\\\\\\"\"");
}

TEST(Escape, NoControlByteNorOtherByteOverAsciiSurvives) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string out = escaped(std::string("a") + static_cast<char>(byte) + "b");
    for (const char c : out) {
      EXPECT_GE(static_cast<unsigned char>(c), 0x20) << byte;
      EXPECT_LE(static_cast<unsigned char>(c), 0x7e) << byte;
    }
  }
  EXPECT_EQ(escaped("\n"), "\"\\x0a\"");
  EXPECT_EQ(escaped("\x1b[2J"), "\"\\x1b[2J\"");
  EXPECT_EQ(escaped("\xff"), "\"\\xff\"");
}

TEST(Escape, CutsAtTheLimitAndSaysSo) {
  EXPECT_EQ(escaped("abcd", 4), "abcd");
  EXPECT_EQ(escaped("abcde", 4), "\"abcd\"~");
  // An escape is never cut in two.
  EXPECT_EQ(escaped("ab\n", 4), "\"ab\"~");
  EXPECT_LE(escaped(std::string(1 << 20, '\n')).size(), MAX_VALUE + 3);
}

TEST(Log, WritesOneLineWithTimeLevelServiceEventAndFields) {
  Pipe pipe;
  const Log log("cordon-test", pipe.writeEnd(), Level::INFO, false);
  log.info("peer.accepted", {{"uid", 1000u}, {"delta", -1}, {"ok", true}, {"text", "x\ny=1"}});
  EXPECT_THAT(pipe.read(),
              MatchesRegex("20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]"
                           "\\.[0-9][0-9][0-9]Z info cordon-test peer\\.accepted uid=1000 delta=-1 "
                           "ok=true text=\"x\\\\x0ay=1\"\n"));
}

TEST(Log, JournalFormCarriesThePriority) {
  Pipe pipe;
  const Log log("s", pipe.writeEnd(), Level::DEBUG, true);
  log.debug("a.b");
  log.info("a.b");
  log.warn("a.b");
  log.error("a.b");
  EXPECT_EQ(pipe.read(), "<7>debug s a.b\n<6>info s a.b\n<4>warn s a.b\n<3>error s a.b\n");
}

TEST(Log, HoldsBackWhatIsBelowItsLevel) {
  Pipe pipe;
  const Log log("s", pipe.writeEnd(), Level::WARN, true);
  log.info("a.b");
  EXPECT_EQ(pipe.read(), "");
}

TEST(Log, BracesAreNoDirective) {
  Pipe pipe;
  const Log log("s", pipe.writeEnd(), Level::INFO, true);
  log.info("a.b", {{"text", "{} {0} %s%n"}});
  EXPECT_EQ(pipe.read(), "<6>info s a.b text=\"{} {0} %s%n\"\n");
}

TEST(Log, ARequestsLinesCarryItsId) {
  Pipe pipe;
  const Log log("s", pipe.writeEnd(), Level::INFO, true);
  const Log request = log.forRequest("ab cd");
  request.info("a.b", {{"n", 1}});
  log.info("a.b");
  EXPECT_EQ(pipe.read(), "<6>info s a.b request=\"ab cd\" n=1\n<6>info s a.b\n");
}

std::size_t linesOf(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// A writer that waits ends by SIGALRM instead of standing for ever.
class Impatience {
 public:
  Impatience() { ::alarm(20); }
  ~Impatience() { ::alarm(0); }
  Impatience(const Impatience&) = delete;
  Impatience& operator=(const Impatience&) = delete;
};

constexpr std::uint64_t MANY = 4096;

void losesAndRecovers(Pipe& pipe) {
  const Impatience impatience;
  const Log log("s", pipe.writeEnd(), Level::INFO, true);
  for (std::uint64_t i = 0; i < MANY; ++i) log.info("a.b", {{"text", std::string(200, 'x')}});
  const std::string whole = "<6>info s a.b text=" + std::string(200, 'x') + "\n";
  EXPECT_GT(log.lostLines(), 0u);
  EXPECT_LT(log.lostLines(), MANY);
  const std::uint64_t first = log.lostLines();
  const std::string before = pipe.read();
  EXPECT_EQ(linesOf(before) + first, MANY) << "each line is there or counted";
  EXPECT_EQ(before.size(), linesOf(before) * whole.size()) << "and there as a whole";

  // Said once, by the first that passes; told again only of what was lost since.
  log.warn("c.d", {{"n", 1}});
  log.info("e.f");
  EXPECT_EQ(pipe.read(),
            "<4>warn s c.d n=1 lost_lines=" + std::to_string(first) + "\n<6>info s e.f\n");
  for (std::uint64_t i = 0; i < MANY; ++i) log.info("a.b", {{"text", std::string(200, 'x')}});
  const std::uint64_t second = log.lostLines() - first;
  EXPECT_EQ(linesOf(pipe.read()) + second, MANY);
  log.info("e.f");
  EXPECT_EQ(pipe.read(), "<6>info s e.f lost_lines=" + std::to_string(second) + "\n");
}

TEST(Log, AFullPipeDoesNotWaitAndItsLostLinesAreCounted) {
  Pipe pipe;
  losesAndRecovers(pipe);
  EXPECT_EQ(::fcntl(pipe.writeEnd(), F_GETFL) & O_NONBLOCK, 0) << "others share the description";
}

TEST(Log, AFullSocketDoesNotWaitAndItsLostLinesAreCounted) {
  Pipe pipe = Pipe::ofSockets();
  // As systemd hands it to a service.
  ASSERT_EQ(::shutdown(pipe.writeEnd(), SHUT_RD), 0);
  losesAndRecovers(pipe);
}

TEST(Log, AControlAPipeThatIsFullDoesMakeAWriterWait) {
  // What the lines above would meet without the question before each write.
  EXPECT_EXIT(
      {
        const Pipe pipe;
        ::alarm(1);
        const std::string text(4096, 'x');
        for (std::uint64_t i = 0; i < MANY; ++i)
          if (::write(pipe.writeEnd(), text.data(), text.size()) < 0) ::_exit(1);
        ::_exit(0);
      },
      testing::KilledBySignal(SIGALRM), "");
}

TEST(Log, LosesToAReaderThatIsGoneWithoutASignal) {
  for (const bool socket : {false, true}) {
    Pipe pipe = socket ? Pipe::ofSockets() : Pipe();
    const Log log("s", pipe.writeEnd(), Level::INFO, true);
    log.info("a.b");
    pipe.closeReading();
    log.info("a.b");
    log.info("a.b");
    EXPECT_EQ(log.lostLines(), 2u) << (socket ? "socket" : "pipe");
  }
}

TEST(Log, WritesToFilesAndLosesToAClosedDescriptor) {
  const int file = ::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  Log("s", file, Level::INFO, true).info("a.b");
  std::array<char, 64> text{};
  EXPECT_EQ(::pread(file, text.data(), text.size(), 0), 14);
  EXPECT_STREQ(text.data(), "<6>info s a.b\n");
  ::close(file);
  const Log log("s", file, Level::INFO, true);
  log.info("a.b");
  EXPECT_EQ(log.lostLines(), 1u);
}

TEST(Log, CutsALineBetweenItsFieldsAndSaysSo) {
  Pipe pipe;
  const Log log(std::string(64, 's'), pipe.writeEnd(), Level::INFO, false);
  const std::string longest(MAX_VALUE, 'v');
  for (std::uint64_t i = 0; i < MANY; ++i) log.error("a.b", {{"text", longest}});
  const std::string before = pipe.read();
  // Sixteen fields of 260 bytes are more than a line.
  log.error("a.b", {{"f01", longest},
                    {"f02", longest},
                    {"f03", longest},
                    {"f04", longest},
                    {"f05", longest},
                    {"f06", longest},
                    {"f07", longest},
                    {"f08", longest},
                    {"f09", longest},
                    {"f10", longest},
                    {"f11", longest},
                    {"f12", longest},
                    {"f13", longest},
                    {"f14", longest},
                    {"f15", longest},
                    {"f16", longest}});
  const std::string line = pipe.read();
  EXPECT_LE(line.size(), MAX_LINE);
  EXPECT_GT(line.size(), MAX_LINE - 2 * MAX_VALUE);
  EXPECT_EQ(linesOf(line), 1u);
  EXPECT_TRUE(
      line.ends_with(" f15=" + longest + " ~ lost_lines=" + std::to_string(log.lostLines()) + "\n"))
      << line;
  EXPECT_THROW(Log(std::string(65, 's'), pipe.writeEnd(), Level::INFO, false),
               std::invalid_argument);
}

TEST(Log, NoLineIsLongerThanWhatAPipeTakesWhole) {
  Pipe pipe;
  const Log log("s", pipe.writeEnd(), Level::INFO, true);
  // Each length of a last field that is there or not: no line is longer than what a pipe takes.
  const std::string longest(MAX_VALUE, 'v');
  for (std::size_t last = 1; last <= MAX_VALUE; ++last) {
    log.error("a.b", {{"f", longest},
                      {"f", longest},
                      {"f", longest},
                      {"f", longest},
                      {"f", longest},
                      {"f", longest},
                      {"f", longest},
                      {"f", longest},
                      {"f", longest},
                      {"f", longest},
                      {"f", longest},
                      {"f", longest},
                      {"f", longest},
                      {"f", longest},
                      {"f", longest},
                      {"f", std::string(last, 'v')}});
    const std::string line = pipe.read();
    ASSERT_LE(line.size(), MAX_LINE);
    const bool cut = line.ends_with("v ~\n");
    ASSERT_NE(cut, line.ends_with(" f=" + std::string(last, 'v') + "\n")) << last;
  }
}

TEST(KjBridge, EscapesWhatKjLogs) {
  Pipe pipe;
  const Log log("s", pipe.writeEnd(), Level::INFO, true);
  {
    KjBridge bridge(log);
    KJ_LOG(ERROR, "from a peer:\n<0>forged", kj::StringPtr("\x1b[31m"));
  }
  const std::string line = pipe.read();
  EXPECT_THAT(line, HasSubstr("<3>error s kj.log at="));
  EXPECT_THAT(line, HasSubstr("\\x0a<0>forged"));
  EXPECT_THAT(line, Not(HasSubstr("\x1b")));
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

TEST(KjBridge, ForbidsStackTraces) {
  Pipe pipe;
  const Log log("s", pipe.writeEnd(), Level::INFO, true);
  KjBridge bridge(log);
  EXPECT_EQ(kj::getExceptionCallback().stackTraceMode(),
            kj::ExceptionCallback::StackTraceMode::NONE);
}

}  // namespace
}  // namespace cordon::log
