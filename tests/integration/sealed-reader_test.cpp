// Role read as it is shipped, under its policy, over a file that it was handed.
#include <array>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sandbox/sandbox.h"
#include "services/parser/testing/list-sinks.h"
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

// Each reader, under the policy: a call that it does not name would be the end.
TEST_F(SealedReaderTest, ReadsJunitWithAListThatNeedsManyMessages) {
  std::string content = "<testsuite name='s'>";
  for (int i = 0; i < 9000; ++i) {
    content += "<testcase classname='c' name='" + std::to_string(i) + "'><failure message='" +
               std::string(500, 'm') + "'/></testcase>";
  }
  const kj::AutoCloseFd file = fileOf(content + "</testsuite>");
  SealedReader reader(io, file);
  CaseList cases;
  auto request = reader.file.readJunitRequest();
  request.setCases(cases.sink());
  const auto response = request.send().wait(io.waitScope);
  EXPECT_EQ(response.getReport().getStatus(), protocols::RecordStatus::OK);
  EXPECT_EQ(response.getReport().getFailed(), 9000U);
  EXPECT_EQ(response.getReport().getListed(), 9000U);
  EXPECT_FALSE(response.getReport().getTruncated());
  ASSERT_EQ(cases.cases.size(), 9000U);
  EXPECT_EQ(cases.cases[8999].name, "8999");
  std::size_t bytes = 0;
  for (const auto& of : cases.cases) bytes += of.text.size();
  EXPECT_GT(bytes, std::size_t{4} << 20);
  std::printf("VmHWM of a reader with a list of %zu bytes: %zu kB\n", bytes,
              reader.process().memory("VmHWM"));
}

TEST_F(SealedReaderTest, ReadsVerdicts) {
  const kj::AutoCloseFd file = fileOf(
      R"({"v":1,"run":"00112233445566778899aabbccddeeff","seq":1,"check":"c","outcome":"fail",)"
      R"("observed_ms":1,"tier":"T3","detail":"\u001b[31m"})"
      "\n");
  SealedReader reader(io, file);
  VerdictList verdicts;
  auto request = reader.file.readVerdictsRequest();
  request.setVerdicts(verdicts.sink());
  const auto response = request.send().wait(io.waitScope);
  EXPECT_EQ(response.getReport().getStatus(), protocols::RecordStatus::OK);
  EXPECT_EQ(response.getReport().getFailed(), 1U);
  ASSERT_EQ(verdicts.records.size(), 1U);
  EXPECT_EQ(verdicts.records[0].detail, "\x1b[31m");
}

TEST_F(SealedReaderTest, ReadsCoverage) {
  const kj::AutoCloseFd file =
      fileOf(R"({"v":1,"source":"dns","epoch":1,"seq":1,"window_ms":[0,10],"events":1,"bytes":2,)"
             R"("dropped":0,"backlog":0,"alive_since_ms":0})"
             "\n");
  SealedReader reader(io, file);
  const auto response = reader.file.readCoverageRequest().send().wait(io.waitScope);
  EXPECT_EQ(response.getReport().getAnswer(), protocols::CoverageAnswer::COMPLETE);
  ASSERT_EQ(response.getReport().getSources().size(), 1U);
}

TEST_F(SealedReaderTest, SaysWithWhatItReads) {
  const kj::AutoCloseFd file = fileOf("");
  SealedReader reader(io, file);
  const auto response = reader.file.describeRequest().send().wait(io.waitScope);
  EXPECT_THAT(std::string(response.getFacts().getExpatVersion().cStr()),
              MatchesRegex("expat_2\\.[0-9]+\\.[0-9]+"));
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
