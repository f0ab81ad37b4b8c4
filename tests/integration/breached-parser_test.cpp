// Code of an attacker inside the serving parser: each call of the catalogue is its death by signal
// 31, and nothing else.
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <iostream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "common/sandbox/sandbox.h"
#include "policy/testing/catalogue.h"
#include "policy/testing/child.h"
#include "tests/integration/sealed-parser.h"

namespace cordon::tests {
namespace {

class BreachedParser : public ::testing::Test {
 protected:
  ~BreachedParser() noexcept override = default;

  void SetUp() override {
    if (::geteuid() != 0)
      GTEST_SKIP() << "SKIPPED(host-lacks:root): starts a process as a launcher does";
  }
  // What the first call of a caller comes to, and how the parser ended if it did.
  struct End {
    bool answered = false;
    int status = 0;
  };
  End breach(const std::string& attempt) {
    SealedParser sealed(
        {.binary = CORDON_BREACHED_PARSER_BINARY, .environment = {{"CORDON_ATTEMPT", attempt}}});
    EXPECT_TRUE(sealed.waitSealed()) << attempt << ": " << sealed.log();
    ParserConnection connection(io, sealed);
    return endOf(connection.parser.describeRequest().send().ignoreResult(), sealed);
  }
  // The same of role read.
  End breachReader(const std::string& attempt) {
    const kj::AutoCloseFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    SealedReader sealed(
        io, file,
        {.binary = CORDON_BREACHED_PARSER_BINARY, .environment = {{"CORDON_ATTEMPT", attempt}}});
    EXPECT_TRUE(sealed.process().waitSealed()) << attempt << ": " << sealed.process().log();
    return endOf(sealed.file.describeRequest().send().ignoreResult(), sealed.process());
  }
  // Every attempt that `policy` does not grant dies by signal 31 and is not answered.
  static void expectDeaths(const std::string& policy,
                           const std::function<End(const std::string&)>& breach) {
    unsigned tried = 0;
    for (const auto& attempt : policy::testing::catalogue()) {
      const bool isGranted = attempt.grantedTo.find(policy) != std::string_view::npos;
      if (isGranted || (attempt.neededBySanitizers && !sandbox::hasMemoryLimit())) continue;
      // A kernel without the i386 or x32 entry ends these by itself.
      const int control = policy::testing::runChild({}, [&]() { attempt.run(); });
      if (WIFSIGNALED(control)) {
        std::cout << "SKIPPED(host-lacks:" << attempt.name << "): unconfined it ends by "
                  << policy::testing::describeStatus(control) << '\n';
        continue;
      }
      const End end = breach(attempt.name);
      EXPECT_FALSE(end.answered) << attempt.name;
      EXPECT_TRUE(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGSYS)
          << attempt.name << ": " << policy::testing::describeStatus(end.status);
      ++tried;
    }
    EXPECT_GE(tried, 30u);
  }
  kj::AsyncIoContext io = kj::setupAsyncIo();

 private:
  template <typename Process>
  End endOf(kj::Promise<void> call, Process& process) {
    End end;
    end.answered =
        call.then([]() { return true; }, [](kj::Exception&&) { return false; }).wait(io.waitScope);
    if (!end.answered) end.status = process.waitEnd();
    return end;
  }
};

// Positive control: the same program serves where it attempts nothing.
TEST_F(BreachedParser, ServesWhereNothingIsAttempted) {
  EXPECT_TRUE(breach("none").answered);
  EXPECT_TRUE(breachReader("none").answered);
}

TEST_F(BreachedParser, DiesBySignal31OfEachAttempt) {
  expectDeaths("parser-channel", [this](const std::string& attempt) { return breach(attempt); });
}

TEST_F(BreachedParser, DiesBySignal31OfEachAttemptInRoleRead) {
  expectDeaths("parser-model",
               [this](const std::string& attempt) { return breachReader(attempt); });
}

}  // namespace
}  // namespace cordon::tests
