// Every behaviour of a hostile guest gets its one verdict, and nothing but a verdict: no exception,
// no wait beyond the budgets, no connection left open. Time is virtual.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/hostile/behaviours.h"
#include "tests/support/virtual-client.h"

namespace cordon::tests {

// GoogleTest prints a parameter that it cannot read byte by byte.
static void PrintTo(const Behaviour& behaviour, std::ostream* out) {
  *out << behaviour.name;
}

namespace {

std::string drive(VirtualClient& host, Driver driver) {
  switch (driver) {
    case Driver::PING:
      return verdictOf(host.ping());
    case Driver::EXEC:
      return verdictOf(host.exec({.cmd = {"true"}, .budget = {.commandMs = 600'000}}));
    case Driver::READ:
      return verdictOf(host.read({.path = "/f", .maxBytes = 65536}));
    case Driver::WRITE:
      return verdictOf(host.write("12345"));
    case Driver::POLL:
      return verdictOf(host.poll());
    case Driver::DIAG:
      return verdictOf(host.diag(10));
  }
  return "no such driver";
}

class HostileGuest : public testing::TestWithParam<Behaviour> {};

TEST_P(HostileGuest, GetsItsVerdict) {
  const Behaviour& behaviour = GetParam();
  VirtualClient host(behaviour.script, behaviour.dial);
  EXPECT_EQ(drive(host, behaviour.driver), behaviour.verdict);
  host.world.settle();
  EXPECT_EQ(host.guest.open(), 0u) << "a connection was left open";
  EXPECT_LE(host.world.elapsed(), 700 * kj::SECONDS);
  if (behaviour.verdict.starts_with("tamper")) {
    // Never retried: whatever was heard after the lie is not the request again.
    ASSERT_FALSE(host.verdicts.entries.empty());
    EXPECT_EQ(host.verdicts.entries.back().what +
                  behaviour.verdict.substr(behaviour.verdict.find_last_of(' ')),
              behaviour.verdict);
    EXPECT_EQ(host.output.ends, behaviour.name == "right_payload_wrong_ack" ? 1u : 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostileGuest, testing::ValuesIn(allBehaviours()),
                         [](const auto& one) { return one.param.name; });

TEST(HostileGuests, AreNamedOnceAndMany) {
  std::set<std::string> names;
  for (const Behaviour& one : allBehaviours())
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
  EXPECT_GE(names.size(), 60u);
}

// The connection ends after each number of bytes that is not the whole reply.
class EarlyEof : public testing::TestWithParam<std::pair<const char*, Driver>> {};

TEST_P(EarlyEof, AtEveryByteIsLoss) {
  const Driver driver = GetParam().second;
  const auto reply = [&](const channel::Id& id) { return honestReply(driver, id); };
  const std::size_t whole = reply(idOf(1)).size();
  const std::string verdict = driver == Driver::EXEC ? "loss reply-lost x4" : "loss reply-lost x3";
  for (std::size_t cut = 0; cut < whole; ++cut) {
    VirtualClient host(
        [&](const Heard& heard) { return Saying::bytes(reply(heard.request.id).substr(0, cut)); });
    ASSERT_EQ(drive(host, driver), verdict) << "after " << cut << " bytes";
    ASSERT_EQ(host.output.ends, 0u);
  }
  VirtualClient host(
      honestBut([&](const Heard& heard) { return Saying::bytes(reply(heard.request.id)); }));
  EXPECT_EQ(drive(host, driver), "ok") << "the whole reply";
}

INSTANTIATE_TEST_SUITE_P(
    All, EarlyEof,
    testing::Values(std::pair{"ping", Driver::PING}, std::pair{"exec", Driver::EXEC},
                    std::pair{"read", Driver::READ}, std::pair{"write", Driver::WRITE},
                    std::pair{"poll", Driver::POLL}, std::pair{"diag", Driver::DIAG}),
    [](const auto& one) { return std::string(one.param.first); });

}  // namespace
}  // namespace cordon::tests
