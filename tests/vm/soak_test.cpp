// 5,000 operations of mixed kinds on one guest while connections are cut at random: nothing runs
// twice (the guest counts), no result is lost.
//
// The parser dials a relay that stands under the guest's uid beside the real socket, so sandbox,
// peer check, cordon-vsock and agent are the real ones; the relay cuts one connection in ten
// somewhere in its first bytes.
#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "services/parser/digest.h"
#include "tests/support/hybrid-relay.h"
#include "tests/support/rpc-client.h"
#include "tests/vm/booted-range.h"

namespace cordon::vm {
namespace {

constexpr unsigned OPERATIONS = 5000;
constexpr unsigned CLIENTS = 4;  // at once, each with a connection of its own to the parser
constexpr unsigned CUT_PERCENT = 10;
constexpr std::uint64_t CUT_WITHIN =
    1200;  // bytes of both directions: a request and most of its reply
constexpr std::uint32_t SEED = 271828;
constexpr unsigned MAX_RECOVERIES = 20;

channel::Sha256 sha(const std::string& text) {
  return parser::digestOf(std::as_bytes(std::span<const char>(text)));
}

struct Tally {
  std::atomic<unsigned> done = 0;
  std::atomic<unsigned> resent = 0;     // delivered more than once
  std::atomic<unsigned> recovered = 0;  // the call lost its reply; a poll brought the result
};

bool isLoss(const parser::Failure& failure) {
  const auto* loss = std::get_if<parser::LossClass>(&failure.reason);
  return loss != nullptr &&
         (*loss == parser::LossClass::REPLY_LOST || *loss == parser::LossClass::UNREACHABLE);
}

// One of the clients: its operations, one after the other.
class Worker {
 private:
  template <typename T>
  static std::string describeFailure(const parser::Outcome<T>& outcome) {
    const auto* failure = std::get_if<parser::Failure>(&outcome);
    return failure != nullptr ? parser::describe(*failure) : "ok";
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return "/tmp/soak-" + std::to_string(number) + "-" + name;
  }

  // An operation without effect may be asked anew; the others must not be.
  template <typename What>
  auto retried(What what) {
    auto outcome = what();
    for (unsigned i = 0; i < MAX_RECOVERIES; ++i) {
      const auto* failure = std::get_if<parser::Failure>(&outcome);
      if (failure == nullptr || !isLoss(*failure)) break;
      outcome = what();
    }
    return outcome;
  }

 public:
  Worker(const std::string& parserSocket, tests::GuestAddress guest, unsigned which, Tally& sum)
      : client(io, parserSocket, guest), number(which), tally(sum), counter(path("runs")) {}

  void run() {
    for (unsigned i = number; i < OPERATIONS; i += CLIENTS) {
      switch (i / CLIENTS % 4) {
        case 0:
          write(i);
          break;
        case 1:
          read(i);
          break;
        case 2:
          (i % 2 == 0) ? ping() : diag();
          break;
        default:
          exec(i);
      }
      ++tally.done;
    }
  }

  // Every command that ran wrote its number once.
  void expectEachRanOnce() {
    std::string runs;
    const auto outcome = retried([&]() { return client.readFile({.path = counter}, runs); });
    ASSERT_TRUE(std::holds_alternative<parser::Content>(outcome)) << describeFailure(outcome);
    std::map<unsigned, unsigned> times;
    std::istringstream lines(runs);
    for (unsigned one; lines >> one;) ++times[one];
    EXPECT_EQ(times.size(), executed.size());
    for (const unsigned one : executed) EXPECT_EQ(times[one], 1u) << "operation " << one;
  }
  [[nodiscard]] std::size_t executions() const { return executed.size(); }

 private:
  void exec(unsigned i) {
    const channel::Id id = ids.next();
    const std::string input(i % 700, static_cast<char>('a' + i % 26));
    std::string output;
    std::string errors;
    const std::string script =
        "echo \"$1\" >>\"$0\"; IFS= read -r line; printf %s \"$line\"; "
        "echo \"err $1\" >&2; exit 7";
    channel::Exec request{.cmd = {"sh", "-c", script, counter, std::to_string(i)}};
    request.dataSize = static_cast<std::int64_t>(input.size());
    const auto outcome = client.exec(std::move(request), input, output, errors, id);
    executed.push_back(i);
    if (const auto* finished = std::get_if<parser::Finished>(&outcome)) {
      if (finished->deliveries > 1) ++tally.resent;
      EXPECT_EQ(finished->rc, 7) << i;
      EXPECT_EQ(output, input) << i;
      EXPECT_EQ(errors, "err " + std::to_string(i) + "\n") << i;
      return;
    }
    recoverExec(i, id, input, std::get<parser::Failure>(outcome));
  }

  // All attempts of the call were cut. The guest keeps the reply until it is acknowledged, so a
  // poll must bring it; where the request never arrived, it must be safe to send it under the same
  // id again.
  void recoverExec(unsigned i, const channel::Id& id, const std::string& input,
                   const parser::Failure& failure) {
    ASSERT_TRUE(isLoss(failure)) << i << ": " << parser::describe(failure);
    ++tally.recovered;
    for (unsigned attempt = 0; attempt < MAX_RECOVERIES; ++attempt) {
      const auto polled = client.poll(id);
      if (const auto* result = std::get_if<parser::Polled>(&polled)) {
        if (std::holds_alternative<parser::Running>(*result)) continue;
        const auto* finished = std::get_if<parser::Finished>(result);
        ASSERT_NE(finished, nullptr) << i;
        EXPECT_EQ(finished->rc, 7) << i;
        EXPECT_EQ(finished->stdoutSha256, sha(input)) << i;
        return;
      }
      const auto& lost = std::get<parser::Failure>(polled);
      if (lost.reason == decltype(lost.reason)(parser::LossClass::UNKNOWN_ID)) {
        // Provably not delivered: the agent knows each id that it was ever given.
        executed.pop_back();
        return exec(i);
      }
      ASSERT_TRUE(isLoss(lost)) << i << ": " << parser::describe(lost);
    }
    ADD_FAILURE() << "the result of operation " << i << " is lost";
  }

  static std::string contents(unsigned i) {
    return std::string(1 + i * 37 % 90000, static_cast<char>(i));
  }

  void write(unsigned i) {
    written = contents(i);
    const auto outcome = retried([&]() {
      return client.writeFile(
          {.path = path("file"), .dataSize = static_cast<std::int64_t>(written.size())}, written);
    });
    const auto* done = std::get_if<parser::Written>(&outcome);
    ASSERT_NE(done, nullptr) << i << ": " << describeFailure(outcome);
    if (done->deliveries > 1) ++tally.resent;
    EXPECT_EQ(done->sha256, sha(written)) << i;
  }

  void read(unsigned i) {
    if (written.empty()) return write(i);
    std::string content;
    const auto outcome =
        retried([&]() { return client.readFile({.path = path("file")}, content); });
    ASSERT_TRUE(std::holds_alternative<parser::Content>(outcome))
        << i << ": " << describeFailure(outcome);
    EXPECT_TRUE(content == written)
        << i << ": " << content.size() << " of " << written.size() << " bytes";
  }

  void ping() {
    const auto outcome = retried([&]() { return client.ping(); });
    const auto* pong = std::get_if<parser::Pong>(&outcome);
    ASSERT_NE(pong, nullptr) << describeFailure(outcome);
    // Another session would mean that the agent restarted and forgot what it had run.
    if (!session) session = pong->session;
    EXPECT_EQ(pong->session, *session);
  }

  void diag() {
    const auto outcome = retried([&]() { return client.diag(10); });
    const auto* report = std::get_if<parser::DiagReport>(&outcome);
    ASSERT_NE(report, nullptr) << describeFailure(outcome);
    EXPECT_EQ(report->listenerRestarts, 0u);
  }

  kj::AsyncIoContext io = kj::setupAsyncIo();
  tests::RpcClient client;
  parser::KernelIdSource ids;
  unsigned number;
  Tally& tally;
  std::string counter;
  std::string written;
  std::optional<channel::Id> session;
  std::vector<unsigned> executed;
};

TEST(Soak, NothingRunsTwiceAndNoResultIsLost) {
  BootedRange range;
  // A second guest directory, in the view that the parser already has; its socket is the relay's.
  const std::uint32_t relayCid = range.cid(0) + 1;
  const auto real = std::filesystem::path(range.guestSocket(0));
  const auto folder = real.parent_path().parent_path() / std::to_string(relayCid);
  std::filesystem::create_directory(folder);
  ASSERT_EQ(::chmod(folder.c_str(), 0711), 0);
  {
    tests::HybridRelay relay({.hybrid = folder / "vsock.sock",
                              .agent = real,
                              .uid = range.uid(0),
                              .port = channel::VSOCK_PORT},
                             {.cutAfter = tests::randomCuts(SEED, CUT_PERCENT, CUT_WITHIN)});
    Tally tally;
    std::vector<std::thread> threads;
    // KJ's loop belongs to the thread that makes it, so each worker lives in its own.
    std::array<std::size_t, CLIENTS> executions{};
    for (unsigned i = 0; i < CLIENTS; ++i)
      threads.emplace_back([&, i]() {
        Worker worker(range.parserSocket(), {relayCid, range.uid(0)}, i, tally);
        worker.run();
        worker.expectEachRanOnce();
        executions.at(i) = worker.executions();
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(tally.done, OPERATIONS);
    std::size_t commands = 0;
    for (const std::size_t count : executions) commands += count;
    // The cuts must have hit: else this shows nothing.
    EXPECT_GE(tally.resent, OPERATIONS / 50);
    std::printf(
        "soak: %u operations (%zu commands) over %u connections, %u delivered more than once, %u "
        "recovered by poll\n",
        tally.done.load(), commands, relay.connections(), tally.resent.load(),
        tally.recovered.load());
    if (testing::Test::HasFailure()) ADD_FAILURE() << range.logs();
  }
  std::filesystem::remove(folder);
}

}  // namespace
}  // namespace cordon::vm
