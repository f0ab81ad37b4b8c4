#include "services/parser/session-check.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/virtual-client.h"

namespace cordon::parser {
namespace {

using channel::BudgetLayer;
using tests::Heard;
using tests::idOf;
using tests::Saying;
using tests::verdictOf;
using tests::VirtualClient;

Failure failure(decltype(Failure::reason) reason, std::uint32_t deliveries = 1) {
  return {.deliveries = deliveries, .reason = std::move(reason)};
}

// host.md §13, row by row.
TEST(SessionCheckTable, ExecAndWrite) {
  for (const Operation operation : {Operation::EXEC, Operation::WRITE_FILE}) {
    const auto check = [&](decltype(Failure::reason) reason, std::uint32_t deliveries) {
      const Failure one = failure(std::move(reason), deliveries);
      return checkFor(operation, deliveries, &one);
    };
    EXPECT_EQ(checkFor(operation, 1, nullptr), SessionCheck::NONE);
    EXPECT_EQ(checkFor(operation, 2, nullptr), SessionCheck::CERTIFY);
    EXPECT_EQ(check(BudgetFailure{BudgetLayer::COMMAND, {}}, 1), SessionCheck::NONE);
    EXPECT_EQ(check(BudgetFailure{BudgetLayer::COMMAND, {}}, 2), SessionCheck::BEST_EFFORT);
    EXPECT_EQ(check(GuestError{"EIO", {}}, 1), SessionCheck::NONE);
    EXPECT_EQ(check(GuestError{"EIO", {}}, 2), SessionCheck::BEST_EFFORT);
    for (const std::uint32_t deliveries : {0u, 1u, 2u}) {
      EXPECT_EQ(check(BudgetFailure{BudgetLayer::CHANNEL, {}}, deliveries),
                SessionCheck::BEST_EFFORT);
      EXPECT_EQ(check(BudgetFailure{BudgetLayer::UNTIMED, {}}, deliveries),
                SessionCheck::BEST_EFFORT);
      EXPECT_EQ(check(LossClass::REPLY_LOST, deliveries), SessionCheck::BEST_EFFORT);
      EXPECT_EQ(check(LossClass::STALE, deliveries), SessionCheck::BEST_EFFORT);
      EXPECT_EQ(check(Tamper{.type = TamperClass::WRONG_ID}, deliveries), SessionCheck::NONE);
      EXPECT_EQ(check(StreamError::FAILED, deliveries), SessionCheck::NONE);
      EXPECT_EQ(check(Tamper{.type = TamperClass::REPLAY_DIFFERS}, deliveries),
                SessionCheck::BEST_EFFORT);
    }
  }
}

TEST(SessionCheckTable, ReadAndWhatHasNoEffect) {
  const auto check = [](Operation operation, decltype(Failure::reason) reason) {
    const Failure one = failure(std::move(reason), 3);
    return checkFor(operation, 3, &one);
  };
  EXPECT_EQ(checkFor(Operation::READ_FILE, 3, nullptr), SessionCheck::NONE);
  EXPECT_EQ(check(Operation::READ_FILE, GuestError{"ENOENT", {}}), SessionCheck::NONE);
  EXPECT_EQ(check(Operation::READ_FILE, FileLimit{1}), SessionCheck::NONE);
  EXPECT_EQ(check(Operation::READ_FILE, BudgetFailure{BudgetLayer::COMMAND, {}}),
            SessionCheck::NONE);
  EXPECT_EQ(check(Operation::READ_FILE, BudgetFailure{BudgetLayer::CHANNEL, {}}),
            SessionCheck::BEST_EFFORT);
  EXPECT_EQ(check(Operation::READ_FILE, LossClass::REPLY_LOST), SessionCheck::BEST_EFFORT);
  for (const Operation operation :
       {Operation::PING, Operation::POLL, Operation::DIAG, Operation::ACK}) {
    EXPECT_EQ(checkFor(operation, 3, nullptr), SessionCheck::NONE);
    EXPECT_EQ(check(operation, LossClass::REPLY_LOST), SessionCheck::NONE);
  }
}

// A guest that loses the first reply to each exec, and answers pings after the pin as told.
struct Flaky {
  explicit Flaky(
      tests::Script checkPing, std::string (*reply)(const channel::Id&) =
                                   [](const channel::Id& id) { return tests::ok(id); })
      : host([this, ping = std::move(checkPing), reply](const Heard& heard) {
          const channel::Id& id = heard.request.id;
          if (heard.request.kind() == "ack") return Saying::bytes(tests::ok(id));
          if (heard.request.kind() == "ping")
            return ++pings == 1 ? Saying::bytes(tests::pong(id)) : ping(heard);
          return ++deliveries == 1 ? Saying::close() : Saying::bytes(reply(id));
        }) {}
  unsigned pings = 0;
  unsigned deliveries = 0;
  VirtualClient host;
};

Saying samePong(const Heard& heard) {
  return Saying::bytes(tests::pong(heard.request.id));
}
Saying otherPong(const Heard& heard) {
  return Saying::bytes(tests::pong(heard.request.id, VirtualClient::OTHER_SESSION));
}
Saying noPong(const Heard&) {
  return Saying::close();
}
Saying badPong(const Heard& heard) {
  return Saying::bytes(tests::ok(heard.request.id));
}
Saying errorPong(const Heard& heard) {
  return Saying::bytes(tests::error(heard.request.id, "EIO"));
}

TEST(SessionCheck, CertifiesASuccessThatWasDeliveredTwice) {
  Flaky same(samePong);
  ASSERT_EQ(verdictOf(same.host.pin()), "ok");
  EXPECT_EQ(verdictOf(same.host.write("x")), "ok");
  EXPECT_EQ(same.pings, 2u);
  // Delivered once: no check.
  EXPECT_EQ(verdictOf(same.host.write("x")), "ok");
  EXPECT_EQ(same.pings, 2u);
}

TEST(SessionCheck, AChangedSessionIsTheOutcomeAndIsPinned) {
  Flaky changed(otherPong);
  ASSERT_EQ(verdictOf(changed.host.pin()), "ok");
  const auto outcome = changed.host.write("x");
  EXPECT_EQ(verdictOf(outcome), "session-changed x2");
  EXPECT_EQ(std::get<SessionChange>(std::get<Failure>(outcome).reason),
            (SessionChange{VirtualClient::SESSION, VirtualClient::OTHER_SESSION}));
  EXPECT_EQ(KJ_ASSERT_NONNULL(changed.host.client.pinned()), VirtualClient::OTHER_SESSION);
  // From here on the new one counts.
  changed.deliveries = 0;
  EXPECT_EQ(verdictOf(changed.host.write("x")), "ok");
}

TEST(SessionCheck, ASuccessThatCannotBeCertifiedIsNone) {
  Flaky dead(noPong);
  ASSERT_EQ(verdictOf(dead.host.pin()), "ok");
  EXPECT_EQ(verdictOf(dead.host.write("x")), "loss uncertified x2");
  Flaky failing(errorPong);
  ASSERT_EQ(verdictOf(failing.host.pin()), "ok");
  EXPECT_EQ(verdictOf(failing.host.write("x")), "loss uncertified x2");
  Flaky silent([](const Heard&) { return Saying::silence(); });
  ASSERT_EQ(verdictOf(silent.host.pin()), "ok");
  const kj::Duration before = silent.host.world.elapsed();
  EXPECT_EQ(verdictOf(silent.host.write("x")), "loss uncertified x2");
  EXPECT_LE(silent.host.world.elapsed() - before, 31 * kj::SECONDS);
  Flaky tampering(badPong);
  ASSERT_EQ(verdictOf(tampering.host.pin()), "ok");
  EXPECT_EQ(verdictOf(tampering.host.write("x")), "tamper wrong-kind x2");
}

TEST(SessionCheck, WithoutAPinThereIsNone) {
  Flaky changed(otherPong);
  changed.pings = 1;
  EXPECT_EQ(verdictOf(changed.host.write("x")), "ok");
  EXPECT_EQ(changed.pings, 1u);
}

TEST(SessionCheck, OnlyAChangeOrTamperOutranksAFailureInHand) {
  const auto guestError = [](const channel::Id& id) { return tests::error(id, "EACCES"); };
  const auto run = [&](tests::Script ping) {
    Flaky one(std::move(ping), guestError);
    EXPECT_EQ(verdictOf(one.host.pin()), "ok");
    return verdictOf(one.host.write("x"));
  };
  EXPECT_EQ(run(samePong), "guest EACCES x2");
  EXPECT_EQ(run(noPong), "guest EACCES x2");
  EXPECT_EQ(run(errorPong), "guest EACCES x2");
  EXPECT_EQ(run(otherPong), "session-changed x2");
  EXPECT_EQ(run(badPong), "tamper wrong-kind x2");
}

TEST(SessionCheck, ARestartBetweenResendsIsSeenWhereThePollsAnswerIsUnknown) {
  // The agent restarts while the command runs: its poll knows nothing, its session is another.
  unsigned pings = 0;
  VirtualClient host([&](const Heard& heard) {
    const channel::Id& id = heard.request.id;
    if (heard.request.kind() == "ping") return ++pings == 1 ? samePong(heard) : otherPong(heard);
    return heard.request.kind() == "poll" ? Saying::bytes(tests::error(id, "ENOENT"))
                                          : Saying::silence();
  });
  ASSERT_EQ(verdictOf(host.pin()), "ok");
  EXPECT_EQ(verdictOf(host.exec()), "session-changed x1");
}

TEST(SessionCheck, AnotherReplyAfterARestartIsNoTamper) {
  const auto run = [](const channel::Id& session) {
    unsigned execs = 0;
    unsigned pings = 0;
    VirtualClient host([&](const Heard& heard) {
      const channel::Id& id = heard.request.id;
      if (heard.request.kind() == "ping")
        return Saying::bytes(tests::pong(id, ++pings == 1 ? VirtualClient::SESSION : session));
      const std::string reply = tests::result(id, ++execs == 1 ? "first run" : "other run");
      return Saying::bytes(execs == 1 ? reply.substr(0, reply.size() - 5) : reply);
    });
    EXPECT_EQ(verdictOf(host.pin()), "ok");
    return verdictOf(host.exec());
  };
  EXPECT_EQ(run(VirtualClient::OTHER_SESSION), "session-changed x2");
  EXPECT_EQ(run(VirtualClient::SESSION), "tamper replay-differs x2");
}

TEST(SessionCheck, EachOperationIsJudgedByTheSessionItStartedUnder) {
  // Two writes straddle a restart; the first to notice pins the new session, which must not certify
  // the second.
  unsigned pings = 0;
  std::map<std::string, unsigned> deliveries;
  VirtualClient host([&](const Heard& heard) {
    const channel::Id& id = heard.request.id;
    if (heard.request.kind() == "ack") return Saying::bytes(tests::ok(id));
    if (heard.request.kind() == "ping") return ++pings == 1 ? samePong(heard) : otherPong(heard);
    return ++deliveries[toHex(id)] == 1 ? Saying::close() : Saying::bytes(tests::ok(id));
  });
  ASSERT_EQ(verdictOf(host.pin()), "ok");
  tests::MemorySource source("x");
  auto first = host.client.writeFile(idOf(1), {.path = "/a", .dataSize = 1}, source);
  auto second = host.client.writeFile(idOf(2), {.path = "/b", .dataSize = 1}, source);
  EXPECT_EQ(verdictOf(host.world.run(kj::mv(first))), "session-changed x2");
  EXPECT_EQ(verdictOf(host.world.run(kj::mv(second))), "session-changed x2");
}

}  // namespace
}  // namespace cordon::parser
