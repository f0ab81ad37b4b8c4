#include "common/log/log.h"

#include <array>
#include <fcntl.h>
#include <string>
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
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) throw std::runtime_error("pipe2");
  }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  [[nodiscard]] int writeEnd() const { return ends[1]; }
  [[nodiscard]] std::string read() const {
    std::string text(65536, '\0');
    const ssize_t size = ::read(ends[0], text.data(), text.size());
    text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return text;
  }

 private:
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

TEST(Log, AFullPipeLosesLinesAndCountsThem) {
  Pipe pipe;
  const Log log("s", pipe.writeEnd(), Level::INFO, true);
  for (int i = 0; i < 4096; ++i)
    log.info("a.b", {{"text", "some sixty-four bytes of text so that the pipe is soon full"}});
  EXPECT_GT(log.lostLines(), 0u);
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
