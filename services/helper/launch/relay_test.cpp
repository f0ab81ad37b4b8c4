#include "services/helper/launch/relay.h"

#include <array>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include <gmock/gmock.h>

namespace cordon::launch {
namespace {

using testing::HasSubstr;

// A file without a name.
UniqueFd anonymousFile() {
  return UniqueFd(memfd_create("relay-test", MFD_CLOEXEC));
}

std::string contentsOf(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  off_t offset = 0;
  for (ssize_t size; (size = pread(fd, buffer.data(), buffer.size(), offset)) > 0; offset += size) {
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  return text;
}

void send(const UniqueFd& fd, const std::string& text) {
  ASSERT_EQ(write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

// Pumps what is there. Whether the other side is still open.
bool drain(Relay& relay) {
  for (int i = 0; i < 1000; ++i) {
    if (!relay.pump()) return false;
  }
  return true;
}

TEST(EscapeForTerminal, LeavesOnlyPrintableAscii) {
  EXPECT_EQ(escapeForTerminal("plain text\twith tab"), "plain text\twith tab");
  EXPECT_EQ(escapeForTerminal("\x1b[2J\r\x07"), "\\x1b[2J\\x0d\\x07");
  EXPECT_EQ(escapeForTerminal("\\x1b"), "\\\\x1b");
  EXPECT_EQ(escapeForTerminal("\x7f\xc2\x9b"), "\\x7f\\xc2\\x9b");
  EXPECT_EQ(escapeForTerminal(std::string("\0", 1)), "\\x00");
}

TEST(ConsoleRelay, KeepsTheBeginningAndDropsTheRest) {
  Pipe pipe = makeRelayPipe();
  UniqueFd file = anonymousFile();
  UniqueFd copy(dup(file.get()));
  ConsoleRelay relay(std::move(pipe.reader), std::move(file), 10);
  send(pipe.writer, "0123456");
  EXPECT_TRUE(drain(relay));
  EXPECT_EQ(contentsOf(copy.get()), "0123456");
  send(pipe.writer, "789abcdef");
  EXPECT_TRUE(drain(relay));
  send(pipe.writer, std::string(60000, 'x'));
  EXPECT_TRUE(drain(relay));
  send(pipe.writer, std::string(60000, 'x'));  // would block if the first were still in the pipe
  EXPECT_TRUE(drain(relay));
  EXPECT_EQ(contentsOf(copy.get()), "0123456789");
  pipe.writer.reset();
  EXPECT_FALSE(drain(relay));
}

TEST(ConsoleRelay, GoesOnWhenTheFileTakesNoMore) {
  Pipe pipe = makeRelayPipe();
  ConsoleRelay relay(std::move(pipe.reader), UniqueFd(open("/dev/full", O_WRONLY | O_CLOEXEC)));
  for (int i = 0; i < 4; ++i) {
    send(pipe.writer, std::string(60000, 'x'));
    EXPECT_TRUE(drain(relay));
  }
}

TEST(LogRelay, NamesAndEscapesEachLine) {
  Pipe pipe = makeRelayPipe();
  UniqueFd sink = anonymousFile();
  LogRelay relay("vmm", std::move(pipe.reader), sink.get());
  send(pipe.writer, "one\ntw");
  EXPECT_TRUE(drain(relay));
  EXPECT_EQ(contentsOf(sink.get()), "vmm: one\n");
  send(pipe.writer, "o\x1b]0;x\x07\nlast");
  pipe.writer.reset();
  EXPECT_FALSE(drain(relay));
  EXPECT_EQ(contentsOf(sink.get()), "vmm: one\nvmm: two\\x1b]0;x\\x07\nvmm: last\n");
}

TEST(LogRelay, CutsALineThatNeverEnds) {
  Pipe pipe = makeRelayPipe();
  UniqueFd sink = anonymousFile();
  LogRelay relay("vmm", std::move(pipe.reader), sink.get());
  send(pipe.writer, std::string(LOG_LINE_LIMIT + 1, 'x'));
  pipe.writer.reset();
  EXPECT_FALSE(drain(relay));
  EXPECT_EQ(contentsOf(sink.get()), "vmm: " + std::string(LOG_LINE_LIMIT, 'x') + "\nvmm: x\n");
}

TEST(LogRelay, BoundsWhatAFloodLeavesAndSaysSo) {
  Pipe pipe = makeRelayPipe();
  UniqueFd sink = anonymousFile();
  LogRelay relay("vmm", std::move(pipe.reader), sink.get());
  for (int i = 0; i < 32; ++i) {
    send(pipe.writer, std::string(60000, 'x'));
    EXPECT_TRUE(drain(relay));
  }
  std::string written = contentsOf(sink.get());
  // Twice, should the minute end just then.
  EXPECT_LE(written.size(), 2 * (LOG_BURST + LOG_BURST / 100 + 100));
  EXPECT_THAT(written, HasSubstr("vmm: (more output is dropped for the rest of this minute)\n"));
}

}  // namespace
}  // namespace cordon::launch
