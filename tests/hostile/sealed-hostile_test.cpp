// The behaviours of a hostile guest once more, in real time: each is played by a real endpoint of a
// hybrid socket against the shipped parser, sealed, and its verdict is read from the parser's RPC.
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kj/debug.h>

#include "tests/hostile/behaviours.h"
#include "tests/hostile/hybrid-endpoint.h"
#include "tests/integration/sealed-parser.h"
#include "tests/support/rpc-client.h"
#include "tests/support/virtual-client.h"

namespace cordon::tests {
namespace {

// What a behaviour waits and what the budgets allow are this many times shorter than in virtual
// time, where the allowance of a round trip is 180 s.
constexpr unsigned HASTE = 20;
constexpr channel::Budget BUDGET{.channelMs = 180'000 / HASTE};
// Longer than a round trip, so that silence is found out by the latter.
constexpr std::int64_t COMMAND_MS = 12'000;
// Most of the time is waiting, so several parsers are waited for at once. Each serves eight
// connections, of which half may be earlier ones whose end is still on its way.
constexpr unsigned PARSERS = 3;
constexpr unsigned THREADS = 4 * PARSERS;

// Behaviours that cannot be played here, with the reason.
const std::map<std::string, std::string>& excluded() {
  static const std::map<std::string, std::string> reasons{
      {"hangs_in_the_dial",
       "stands for a transport without a bound of its own; the real one gives up each dial after "
       "10 s, nine times, and says unreachable (hybrid-dial_test)"},
  };
  return reasons;
}

std::string drive(RpcClient& host, Driver driver) {
  std::string output;
  std::string errors;
  switch (driver) {
    case Driver::PING:
      return verdictOf(host.ping());
    case Driver::EXEC:
      return verdictOf(host.exec(
          {.cmd = {"true"}, .budget = {.commandMs = COMMAND_MS, .channelMs = BUDGET.channelMs}},
          std::nullopt, output, errors));
    case Driver::READ:
      return verdictOf(host.readFile({.path = "/f", .maxBytes = 65536, .budget = BUDGET}, output));
    case Driver::WRITE:
      return verdictOf(host.writeFile({.path = "/f", .budget = BUDGET, .dataSize = 5}, "12345"));
    case Driver::POLL:
      return verdictOf(host.poll(VirtualClient::TARGET));
    case Driver::DIAG:
      return verdictOf(host.diag(10));
  }
  return "no such driver";
}

// Until the host has closed all that it opened.
void settle(kj::AsyncIoContext& io, const HybridEndpoint& endpoint) {
  kj::Timer& timer = io.provider->getTimer();
  const kj::TimePoint deadline = timer.now() + 20 * kj::SECONDS;
  while (endpoint.open() != 0 && timer.now() < deadline)
    timer.afterDelay(2 * kj::MILLISECONDS).wait(io.waitScope);
  EXPECT_EQ(endpoint.open(), 0u) << "a connection was left open";
}

bool isOfAnotherPeer(const Behaviour& one) {
  if (!one.dial) return false;
  const Dial first = one.dial(1);
  const auto* tamper = std::get_if<parser::Tamper>(&first);
  return tamper != nullptr && tamper->type == parser::TamperClass::PEER_MISMATCH;
}

class SealedParserAndHostileGuest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0)
      GTEST_SKIP() << "SKIPPED(needs:root): starts a process as a launcher does";
    for (unsigned i = 0; i < PARSERS; ++i) {
      sealed.push_back(
          std::make_unique<SealedParser>(ParserStart{.arguments = {"--allow-root-peer"}}));
      ASSERT_TRUE(sealed.back()->waitSealed()) << sealed.back()->log();
    }
  }
  // Each lives, whatever it was sent.
  void TearDown() override {
    for (const auto& one : sealed) {
      EXPECT_THAT(one->status("State").substr(0, 1), testing::AnyOf("S", "R"));
      if (HasFailure()) std::fputs(one->log().c_str(), stderr);
    }
  }

  // play(io, parser, i) for each i below `count`, on THREADS threads with an event loop each.
  template <typename Play>
  void playAll(std::size_t count, Play play) {
    std::atomic<std::size_t> next = 0;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < THREADS; ++i)
      threads.emplace_back([&, i]() {
        auto io = kj::setupAsyncIo();
        for (std::size_t mine = next++; mine < count; mine = next++)
          play(io, *sealed[i % PARSERS], mine);
      });
    for (auto& thread : threads) thread.join();
  }

  std::vector<std::unique_ptr<SealedParser>> sealed;
};

constexpr std::uint32_t FIRST_CID = 3;
constexpr std::uint32_t STRANGER_UID = 4242;

TEST_F(SealedParserAndHostileGuest, EachBehaviourGetsItsVerdict) {
  std::vector<Behaviour> all = allBehaviours();
  EXPECT_EQ(std::erase_if(all, [](const Behaviour& one) { return excluded().contains(one.name); }),
            excluded().size());
  EXPECT_GE(all.size(), 150u);
  std::atomic<unsigned> played = 0;
  playAll(all.size(), [&](kj::AsyncIoContext& io, SealedParser& parser, std::size_t index) {
    const Behaviour& one = all[index];
    SCOPED_TRACE(one.name);
    const auto cid = static_cast<std::uint32_t>(FIRST_CID + index);
    const bool another = isOfAnotherPeer(one);
    HybridEndpoint endpoint(io, parser.guestSocket(cid), one.script, another ? nullptr : one.dial,
                            HASTE);
    {
      RpcClient host(io, parser.socket(), {.cid = cid, .uid = another ? STRANGER_UID : 0});
      EXPECT_EQ(drive(host, one.driver), one.verdict);
      settle(io, endpoint);
    }
    ++played;
  });
  EXPECT_EQ(played.load(), all.size());
}

TEST_F(SealedParserAndHostileGuest, EofAtEveryByteIsLoss) {
  const std::vector<Driver> drivers{Driver::PING,  Driver::EXEC, Driver::READ,
                                    Driver::WRITE, Driver::POLL, Driver::DIAG};
  playAll(drivers.size(), [&](kj::AsyncIoContext& io, SealedParser& parser, std::size_t index) {
    const Driver driver = drivers[index];
    SCOPED_TRACE(index);
    const auto cid = static_cast<std::uint32_t>(FIRST_CID + index);
    std::size_t cut = 0;
    bool honest = false;
    HybridEndpoint endpoint(
        io, parser.guestSocket(cid),
        [&](const Heard& heard) {
          if (honest && heard.request.kind() == "ack") return Saying::bytes(ok(heard.request.id));
          const std::string whole = honestReply(driver, heard.request.id);
          return Saying::bytes(honest ? whole : whole.substr(0, cut));
        },
        nullptr, HASTE);
    RpcClient host(io, parser.socket(), {.cid = cid, .uid = 0});
    const std::string verdict =
        driver == Driver::EXEC ? "loss reply-lost x4" : "loss reply-lost x3";
    const std::size_t size = honestReply(driver, idOf(1)).size();
    // Each number of bytes costs the back-off of its resends: every seventh here, and the last;
    // hostile_test has them all.
    for (cut = 0; cut < size; cut = cut + 7 < size || cut + 1 == size ? cut + 7 : size - 1)
      ASSERT_EQ(drive(host, driver), verdict) << "after " << cut << " bytes";
    honest = true;
    EXPECT_EQ(drive(host, driver), "ok") << "the whole reply";
    settle(io, endpoint);
  });
}

}  // namespace
}  // namespace cordon::tests
