#include "services/parser/record-file.h"

#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <variant>

#include <gtest/gtest.h>
#include <kj/async.h>

#include "common/ipc/error.h"
#include "services/parser/testing/list-sinks.h"
#include "tests/support/temporary-directory.h"

namespace cordon::parser {
namespace {

std::string verdictLine(int seq) {
  return R"({"v":1,"run":"00112233445566778899aabbccddeeff","seq":)" + std::to_string(seq) +
         R"(,"check":"c","outcome":"pass","observed_ms":1,"tier":"T3"})" + '\n';
}
std::string watermarkLine(int seq) {
  return R"({"v":1,"source":"dns","epoch":1,"seq":)" + std::to_string(seq) + R"(,"window_ms":[)" +
         std::to_string(seq * 10 - 10) + ',' + std::to_string(seq * 10) +
         R"(],"events":0,"bytes":0,"dropped":0,"backlog":0,"alive_since_ms":0})" + '\n';
}

class RecordFileTest : public ::testing::Test {
 protected:
  ~RecordFileTest() noexcept override = default;

  protocols::RecordFile::Client serve(const std::string& content) {
    const std::string path = directory / "file";
    const kj::AutoCloseFd made(::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600));
    EXPECT_EQ(::write(made, content.data(), content.size()), static_cast<ssize_t>(content.size()));
    fd = ::open(path.c_str(), O_RDONLY);
    auto taken = InputFile::take(fd);
    return kj::heap<RecordFileServer>(std::get<InputFile>(std::move(taken)));
  }
  // From now on the file gives an error instead of its bytes.
  void breakFile() {
    const kj::AutoCloseFd folder(::open(directory.path.c_str(), O_RDONLY | O_DIRECTORY));
    ASSERT_EQ(::dup2(folder.get(), fd), fd);
  }
  auto readJunit(protocols::RecordFile::Client& file) {
    auto request = file.readJunitRequest();
    request.setCases(cases.sink());
    return request.send();
  }
  auto readVerdicts(protocols::RecordFile::Client& file) {
    auto request = file.readVerdictsRequest();
    request.setVerdicts(verdicts.sink());
    return request.send();
  }

  kj::EventLoop loop;
  kj::WaitScope scope{loop};
  tests::TemporaryDirectory directory;
  int fd = -1;
  tests::CaseList cases;
  tests::VerdictList verdicts;
};

TEST_F(RecordFileTest, SaysWithWhatItReads) {
  auto file = serve("");
  const auto facts = file.describeRequest().send().wait(scope);
  EXPECT_EQ(std::string(facts.getFacts().getExpatVersion().cStr()).rfind("expat_", 0), 0U);
}

TEST_F(RecordFileTest, ReadsJunit) {
  auto file = serve(R"(<testsuite name="s"><testcase classname="c" name="n"/></testsuite>)");
  const auto response = readJunit(file).wait(scope);
  EXPECT_EQ(response.getReport().getStatus(), protocols::RecordStatus::OK);
  EXPECT_EQ(response.getReport().getPassed(), 1U);
  EXPECT_TRUE(response.getReport().getGreen());
  EXPECT_EQ(response.getReport().getListed(), 1U);
  ASSERT_EQ(cases.cases.size(), 1U);
  EXPECT_EQ(cases.cases[0].name, "n");
  EXPECT_EQ(cases.ends, 1U);
}

TEST_F(RecordFileTest, ReadsVerdictsOfManyPieces) {
  std::string content;
  for (int seq = 1; seq <= 3000; ++seq) content += verdictLine(seq);
  ASSERT_GT(content.size(), 3U * 65536);
  auto file = serve(content);
  const auto response = readVerdicts(file).wait(scope);
  EXPECT_TRUE(response.getReport().getGreen());
  EXPECT_EQ(response.getReport().getPassed(), 3000U);
  ASSERT_EQ(verdicts.records.size(), 3000U);
  EXPECT_EQ(verdicts.records.back().seq, 3000U);
}

TEST_F(RecordFileTest, ReadsCoverageOfAWindow) {
  const std::string content = watermarkLine(1) + watermarkLine(3);
  const auto answerOf = [&](std::int64_t from, std::int64_t to) {
    auto file = serve(content);
    auto request = file.readCoverageRequest();
    request.initWindow().initBounds().setFromMs(from);
    request.getWindow().getBounds().setToMs(to);
    return request.send().wait(scope).getReport().getAnswer();
  };
  EXPECT_EQ(answerOf(0, 10), protocols::CoverageAnswer::COMPLETE);
  EXPECT_EQ(answerOf(0, 11), protocols::CoverageAnswer::INCOMPLETE);
  auto whole = serve(content);
  EXPECT_EQ(whole.readCoverageRequest().send().wait(scope).getReport().getAnswer(),
            protocols::CoverageAnswer::INCOMPLETE);
}

std::string codeOf(kj::Promise<void> promise, kj::WaitScope& scope) {
  return promise
      .then([]() { return std::string("none"); },
            [](kj::Exception&& e) { return std::string(ipc::name(ipc::codeOf(e))); })
      .wait(scope);
}

TEST_F(RecordFileTest, RefusesAWindowThatIsNone) {
  auto file = serve(watermarkLine(1));
  auto request = file.readCoverageRequest();
  request.initWindow().initBounds().setFromMs(1);
  request.getWindow().getBounds().setToMs(1);
  EXPECT_EQ(codeOf(request.send().ignoreResult(), scope), "bad-argument");
}

TEST_F(RecordFileTest, ReadsOnce) {
  auto file = serve("<testsuite/>");
  EXPECT_EQ(readJunit(file).wait(scope).getReport().getStatus(), protocols::RecordStatus::EMPTY);
  EXPECT_EQ(codeOf(readJunit(file).ignoreResult(), scope), "bad-argument");
  EXPECT_EQ(codeOf(readVerdicts(file).ignoreResult(), scope), "bad-argument");
  EXPECT_EQ(codeOf(file.readCoverageRequest().send().ignoreResult(), scope), "bad-argument");
  // What it is may still be asked.
  EXPECT_TRUE(file.describeRequest().send().wait(scope).hasFacts());
}

TEST_F(RecordFileTest, GivesWayBetweenPieces) {
  std::string content;
  for (int seq = 1; seq <= 30'000; ++seq) content += watermarkLine(seq);
  auto file = serve(content);
  std::string order;
  auto reading = file.readCoverageRequest()
                     .send()
                     .then([&](auto&&) { order += "read "; })
                     .eagerlyEvaluate(nullptr);
  auto asking = file.describeRequest()
                    .send()
                    .then([&](auto&&) { order += "described "; })
                    .eagerlyEvaluate(nullptr);
  reading.wait(scope);
  asking.wait(scope);
  EXPECT_EQ(order, "described read ");
}

TEST_F(RecordFileTest, SaysOfAFileThatCannotBeReadThatItIsRefused) {
  auto junit = serve("x");
  breakFile();
  const auto ofJunit = readJunit(junit).wait(scope);
  EXPECT_EQ(ofJunit.getReport().getStatus(), protocols::RecordStatus::REFUSED);
  EXPECT_EQ(ofJunit.getReport().getReason(), protocols::RecordReason::NOT_READABLE);
  EXPECT_FALSE(ofJunit.getReport().getGreen());
  EXPECT_EQ(cases.ends, 0U);
  auto coverage = serve("x");
  breakFile();
  const auto ofCoverage = coverage.readCoverageRequest().send().wait(scope);
  EXPECT_EQ(ofCoverage.getReport().getReason(), protocols::RecordReason::NOT_READABLE);
  EXPECT_EQ(ofCoverage.getReport().getAnswer(), protocols::CoverageAnswer::CONTRADICTORY);
}

}  // namespace
}  // namespace cordon::parser
