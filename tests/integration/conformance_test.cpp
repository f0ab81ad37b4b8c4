// The client against a real agent: the conformance suite through relays of several manners, losses
// at random, a restart.
#include "tests/support/conformance.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/support/core-client.h"
#include "tests/support/guest-process.h"
#include "tests/support/hybrid-relay.h"
#include "tests/support/temporary-directory.h"
#include "tests/support/virtual-client.h"

namespace cordon::tests {
namespace {

constexpr uid_t PLAIN_UID = 64322;

bool isRoot() {
  return ::geteuid() == 0;
}

// An agent behind a relay, both under `uid`.
struct Range {
  explicit Range(RelayFaults faults = {}, uid_t uid = 0)
      : user(uid),
        guest(CORDON_GUEST_BINARY, agentSocket(), uid),
        relay({.hybrid = directory / "hybrid", .agent = directory / "a/agent", .uid = uid},
              std::move(faults)) {}

  // The guest writes into the test's own directory, which goes with the test.
  [[nodiscard]] Vocabulary vocabulary() const { return {.scratch = directory / "a"}; }
  [[nodiscard]] parser::HybridAddress address() const {
    return {.path = directory / "hybrid", .uid = user};
  }
  std::string agentSocket() {
    const std::string home = directory / "a";
    std::filesystem::create_directory(home);
    if (user != ::geteuid() && ::chown(home.c_str(), user, user) != 0)
      throw std::runtime_error("chown");
    return home + "/agent";
  }

  TemporaryDirectory directory;
  uid_t user;
  GuestProcess guest;
  HybridRelay relay;
};

class Conformance : public testing::TestWithParam<ConformanceCase> {};

TEST_P(Conformance, ThroughARelay) {
  if (!isRoot()) GTEST_SKIP() << "SKIPPED(needs:root): the agent changes users";
  Range range;
  CoreClient client(range.address());
  GetParam().run(client, range.vocabulary());
  EXPECT_TRUE(client.verdicts.entries.empty() ||
              client.verdicts.entries.front().what == "budget command" ||
              client.verdicts.entries.front().what.starts_with("loss "));
}

TEST_P(Conformance, ThroughADribblingRelay) {
  if (!isRoot()) GTEST_SKIP() << "SKIPPED(needs:root): the agent changes users";
  Range range({.dribbles = true});
  CoreClient client(range.address());
  GetParam().run(client, range.vocabulary());
}

INSTANTIATE_TEST_SUITE_P(All, Conformance, testing::ValuesIn(conformanceCases()),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(ConformanceAtOnce, ThroughRoundTripsOfTwoSeconds) {
  if (!isRoot()) GTEST_SKIP() << "SKIPPED(needs:root): the agent changes users";
  // All cases at the same time: they wait, and hardly work.
  Range range({.roundTrip = 2 * kj::SECONDS});
  std::vector<std::thread> threads;
  for (const ConformanceCase& one : conformanceCases())
    threads.emplace_back([&range, &one]() {
      SCOPED_TRACE(one.name);
      CoreClient client(range.address());
      one.run(client, range.vocabulary());
    });
  for (auto& thread : threads) thread.join();
}

TEST(ConformanceUnprivileged, AnAgentWithoutPrivilegesServesItsOwnUser) {
  if (!isRoot()) GTEST_SKIP() << "SKIPPED(needs:root): listens as another user";
  Range range({}, PLAIN_UID);
  {
    CoreClient client(range.address());
    for (const char* name :
         {"ping", "exec_echo", "exec_stdin", "write_then_read", "command_budget"})
      for (const ConformanceCase& one : conformanceCases())
        if (std::string_view(name) == one.name) one.run(client, range.vocabulary());
  }
  CoreClient stranger({.path = range.directory / "hybrid", .uid = PLAIN_UID + 1});
  EXPECT_EQ(verdictOf(stranger.ping()), "tamper peer-mismatch x0");
}

TEST(Losses, AnEndpointThatNeverClosesIsABudgetFailure) {
  Range range({.neverCloses = true}, ::geteuid());
  CoreClient client(range.address(), {.allowance = 300 * kj::MILLISECONDS});
  EXPECT_EQ(verdictOf(client.ping()), "budget channel x1");
}

std::size_t linesOf(const std::string& path) {
  std::ifstream file(path);
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
}

TEST(Losses, NothingRunsTwiceWhateverIsCut) {
  // Two of five connections are cut somewhere. Each command appends one line to a file of its own.
  Range range({.cutAfter = randomCuts(20231, 40, 900)}, ::geteuid());
  CoreClient client(range.address());
  while (!std::holds_alternative<parser::Pong>(client.pinSession())) {
  }
  unsigned finished = 0;
  unsigned resent = 0;
  for (int i = 0; i < 150; ++i) {
    const std::string path = range.directory / ("ran-" + std::to_string(i));
    std::string output;
    std::string errors;
    const auto outcome =
        client.exec({.cmd = {"sh", "-c", "echo ran >>\"$0\"; echo " + std::string(300, 'x'), path}},
                    std::nullopt, output, errors, std::nullopt);
    if (const auto* done = std::get_if<parser::Finished>(&outcome)) {
      ++finished;
      if (done->deliveries > 1) ++resent;
      EXPECT_EQ(output, std::string(300, 'x') + "\n");
      EXPECT_EQ(linesOf(path), 1u) << i;
    } else {
      const std::string what = parser::describe(std::get<parser::Failure>(outcome));
      EXPECT_TRUE(what == "loss reply-lost" || what == "loss uncertified") << what;
      EXPECT_LE(linesOf(path), 1u) << i;
    }
  }
  EXPECT_GE(finished, 130u);
  EXPECT_GE(resent, 20u);
}

TEST(Losses, ARestartOfTheAgentIsSeen) {
  Range range({}, ::geteuid());
  CoreClient client(range.address());
  ASSERT_EQ(verdictOf(client.pinSession()), "ok");
  const std::string path = range.directory / "ran";
  // While the command runs, another agent takes the place of the first: it knows nothing of the
  // request and runs it again.
  std::thread restarter([&]() {
    while (linesOf(path) == 0) std::this_thread::yield();
    range.guest.restart();
  });
  std::string output;
  std::string errors;
  const auto outcome = client.exec(
      {.cmd = {"sh", "-c", "echo ran >>\"$0\"; [ $(wc -l <\"$0\") = 2 ] || sleep 30", path}},
      std::nullopt, output, errors, std::nullopt);
  restarter.join();
  EXPECT_EQ(verdictOf(outcome), "session-changed x2");
  EXPECT_EQ(linesOf(path), 2u) << "the control: it did run twice";
}

}  // namespace
}  // namespace cordon::tests
