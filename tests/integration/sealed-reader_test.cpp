// Role read as it is shipped, under its policy, over a file that it was handed.
#include <array>
#include <csignal>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sandbox/sandbox.h"
#include "tests/integration/sealed-parser.h"
#include "tests/support/temporary-directory.h"

namespace cordon::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class SealedReaderTest : public ::testing::Test {
 protected:
  ~SealedReaderTest() noexcept override = default;

  void SetUp() override {
    if (::geteuid() != 0)
      GTEST_SKIP() << "SKIPPED(host-lacks:root): starts a process as a launcher does";
  }
  kj::AutoCloseFd fileOf(const std::string& content) {
    const std::string path = directory / "file";
    const kj::AutoCloseFd file(
        ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
    EXPECT_EQ(::write(file.get(), content.data(), content.size()),
              static_cast<ssize_t>(content.size()));
    return kj::AutoCloseFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  static void expectExit(SealedProcess& process, int code) {
    const int status = process.waitEnd();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == code) << status << process.log();
  }
  static void expectRefused(SealedReader& reader, const std::string& line) {
    EXPECT_FALSE(reader.process().waitSealed());
    expectExit(reader.process(), 1);
    EXPECT_THAT(reader.process().log(), HasSubstr(" error cordon-parser " + line));
  }

  TemporaryDirectory directory;
  kj::AsyncIoContext io = kj::setupAsyncIo();
};

TEST_F(SealedReaderTest, IsConfinedAsEveryService) {
  const kj::AutoCloseFd file = fileOf("");
  SealedReader reader(io, file);
  ASSERT_TRUE(reader.process().waitSealed()) << reader.process().log();
  EXPECT_THAT(reader.process().log(), HasSubstr(" policy=parser-model "));
  EXPECT_EQ(reader.process().status("Seccomp"), "2");
  EXPECT_EQ(reader.process().status("NoNewPrivs"), "1");
  EXPECT_EQ(reader.process().status("Threads"), "1");
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    EXPECT_EQ(reader.process().status(set), "0000000000000000") << set;
  }
  EXPECT_THAT(reader.process().limit("Max cpu time"), MatchesRegex("330 +331 +seconds *"));
  EXPECT_THAT(reader.process().limit("Max open files"), MatchesRegex("16 +16 +files *"));
  EXPECT_THAT(reader.process().limit("Max file size"), MatchesRegex("0 +0 +bytes *"));
  if (sandbox::hasMemoryLimit()) {
    EXPECT_THAT(reader.process().limit("Max address space"),
                MatchesRegex("268435456 +268435456 +bytes *"));
  }
}

TEST_F(SealedReaderTest, EndsWhenItsCallerGoes) {
  const kj::AutoCloseFd file = fileOf("");
  SealedReader reader(io, file);
  ASSERT_TRUE(reader.process().waitSealed()) << reader.process().log();
  reader.leave();
  expectExit(reader.process(), 0);
}

TEST_F(SealedReaderTest, RefusesWhatIsNoRegularFile) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const kj::AutoCloseFd readEnd(pipe[0]);
  const kj::AutoCloseFd writeEnd(pipe[1]);
  SealedReader ofPipe(io, readEnd);
  expectRefused(ofPipe, "file.refused reason=not-regular");
  const kj::AutoCloseFd device(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  SealedReader ofDevice(io, device);
  expectRefused(ofDevice, "file.refused reason=not-regular");
  const kj::AutoCloseFd folder(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  SealedReader ofFolder(io, folder);
  expectRefused(ofFolder, "file.refused reason=not-regular");
}

TEST_F(SealedReaderTest, RefusesAFileThatItCouldChange) {
  fileOf("");
  const kj::AutoCloseFd file(::open((directory / "file").c_str(), O_RDWR | O_CLOEXEC));
  SealedReader reader(io, file);
  expectRefused(reader, "file.refused reason=writable");
}

TEST_F(SealedReaderTest, RefusesACapabilityLeftInTheBoundingSet) {
  const kj::AutoCloseFd file = fileOf("");
  SealedReader reader(io, file, {.birth = {.keepsCapabilities = false}});
  expectRefused(reader, "sandbox.refused missing=clear-bounding ");
}

// Who has no privilege cannot drop groups in a user namespace of its own; the policy opens nothing
// that they could open.
TEST_F(SealedReaderTest, ServesWithGroupsThatItMayNotDrop) {
  const kj::AutoCloseFd file = fileOf("");
  SealedReader reader(
      io, file,
      {.birth = {.keepsGroup = true, .keepsCapabilities = false, .keepsBounding = false}});
  EXPECT_TRUE(reader.process().waitSealed()) << reader.process().log();
}

}  // namespace
}  // namespace cordon::tests
