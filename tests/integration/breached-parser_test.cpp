// Code of an attacker inside the serving parser: each call of the catalogue is its death by signal
// 31, and nothing else.
#include <csignal>
#include <cstring>
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
    End end;
    end.answered = connection.parser.describeRequest()
                       .send()
                       .then([](auto&&) { return true; }, [](kj::Exception&&) { return false; })
                       .wait(io.waitScope);
    if (!end.answered) end.status = sealed.waitEnd();
    return end;
  }
  kj::AsyncIoContext io = kj::setupAsyncIo();
};

// Positive control: the same program serves where it attempts nothing.
TEST_F(BreachedParser, ServesWhereNothingIsAttempted) {
  EXPECT_TRUE(breach("none").answered);
}

TEST_F(BreachedParser, DiesBySignal31OfEachAttempt) {
  unsigned tried = 0;
  for (const auto& attempt : policy::testing::catalogue()) {
    const bool isGranted = attempt.grantedTo.find("parser-channel") != std::string_view::npos;
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

}  // namespace
}  // namespace cordon::tests
