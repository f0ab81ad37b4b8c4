#include "services/parser/guest-client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/parser/digest.h"
#include "tests/support/virtual-client.h"

namespace cordon::parser {
namespace {

using ::testing::ElementsAre;
using tests::Dial;
using tests::DialHangs;
using tests::DialWorks;
using tests::Heard;
using tests::honestBut;
using tests::idOf;
using tests::Saying;
using tests::verdictOf;
using tests::VirtualClient;

std::string pattern(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  return bytes;
}

channel::Sha256 sha(std::string_view text) {
  return digestOf(std::as_bytes(std::span<const char>(text.data(), text.size())));
}

Saying half(const std::string& reply) {
  return Saying::bytes(reply.substr(0, reply.size() / 2));
}

TEST(GuestClientPing, TellsDaemonAndSessionInOneExchange) {
  VirtualClient one(honestBut(nullptr));
  const auto outcome = one.ping();
  ASSERT_EQ(verdictOf(outcome), "ok");
  EXPECT_EQ(std::get<Pong>(outcome), (Pong{"guest 1", VirtualClient::SESSION}));
  EXPECT_EQ(one.guest.dials(), 1u);
}

TEST(GuestClientExec, HandsOutStreamsApartAndAcks) {
  VirtualClient one(honestBut([](const Heard& heard) {
    return Saying::bytes(tests::result(heard.request.id, "hello", "wo", 7));
  }));
  const auto outcome = one.exec();
  ASSERT_EQ(verdictOf(outcome), "ok");
  const auto& done = std::get<Finished>(outcome);
  EXPECT_EQ(done.rc, 7);
  EXPECT_EQ(done.stdoutSize, 5u);
  EXPECT_EQ(done.stderrSize, 2u);
  EXPECT_EQ(done.stdoutSha256, sha("hello"));
  EXPECT_EQ(done.stderrSha256, sha("wo"));
  EXPECT_EQ(done.deliveries, 1u);
  EXPECT_EQ(one.output.content, "hello");
  EXPECT_EQ(one.errors.content, "wo");
  EXPECT_EQ(one.output.ends, 1u);
  EXPECT_EQ(one.errors.ends, 1u);
  ASSERT_EQ(one.guest.heard().size(), 2u);
  EXPECT_EQ(std::get<channel::Ack>(one.guest.heard()[1].request.body).targetId,
            VirtualClient::REQUEST);
  EXPECT_TRUE(one.verdicts.entries.empty());
}

TEST(GuestClientExec, SendsStdinOfSeveralChunksInFull) {
  const std::string input = pattern(2 * BULK_CHUNK + 12345);
  VirtualClient one(honestBut([](const Heard& heard) {
    return Saying::bytes(tests::result(heard.request.id, heard.bulk));
  }));
  tests::MemorySource source(input);
  const auto outcome = one.world.run(one.client.exec(
      VirtualClient::REQUEST, {.cmd = {"cat"}, .dataSize = static_cast<std::int64_t>(input.size())},
      source, one.output, one.errors));
  ASSERT_EQ(verdictOf(outcome), "ok");
  EXPECT_EQ(one.output.content, input);
  EXPECT_THAT(source.offsets, ElementsAre(0u, BULK_CHUNK, 2 * BULK_CHUNK));
}

TEST(GuestClientExec, TellsEmptyStdinFromNone) {
  VirtualClient one(honestBut([](const Heard& heard) {
    return Saying::bytes(tests::result(
        heard.request.id, std::get<channel::Exec>(heard.request.body).dataSize ? "some" : "none"));
  }));
  ASSERT_EQ(verdictOf(one.exec()), "ok");
  EXPECT_EQ(one.output.content, "none");
  tests::MemorySource empty("");
  tests::MemorySink output;
  const auto outcome = one.world.run(
      one.client.exec(idOf(2), {.cmd = {"cat"}, .dataSize = 0}, empty, output, one.errors));
  ASSERT_EQ(verdictOf(outcome), "ok");
  EXPECT_EQ(output.content, "some");
  EXPECT_TRUE(empty.offsets.empty());
}

TEST(GuestClientExec, ResendsUnderTheSameIdAfterALoss) {
  VirtualClient one(honestBut([](const Heard& heard) {
    const std::string reply = tests::result(heard.request.id, "once", "twice");
    return heard.connection == 1 ? half(reply) : Saying::bytes(reply);
  }));
  const auto outcome = one.exec();
  ASSERT_EQ(verdictOf(outcome), "ok");
  EXPECT_EQ(std::get<Finished>(outcome).deliveries, 2u);
  EXPECT_EQ(one.output.content, "once");
  EXPECT_EQ(one.errors.content, "twice");
  EXPECT_EQ(one.guest.heard()[0].request, one.guest.heard()[1].request);
}

TEST(GuestClientExec, HandsOutEachByteOnceOverResends) {
  // Cut at every byte of the reply: whatever of it came twice must be handed out once.
  const std::string whole = tests::result(VirtualClient::REQUEST, pattern(40), pattern(30));
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    VirtualClient one(honestBut([&](const Heard& heard) {
      return Saying::bytes(heard.connection == 1 ? whole.substr(0, cut) : whole);
    }));
    ASSERT_EQ(verdictOf(one.exec()), "ok") << cut;
    EXPECT_EQ(one.output.content, pattern(40));
    EXPECT_EQ(one.errors.content, pattern(30));
  }
}

TEST(GuestClientExec, GivesUpAfterFourLossesInARow) {
  VirtualClient one(honestBut([](const Heard&) { return Saying::close(); }));
  EXPECT_EQ(verdictOf(one.exec()), "loss reply-lost x4");
  EXPECT_EQ(one.guest.dials(), 4u);
  VirtualClient two(honestBut(nullptr), [](unsigned) -> Dial { return Unreachable{}; });
  EXPECT_EQ(verdictOf(two.exec()), "loss unreachable x0");
  EXPECT_EQ(two.guest.dials(), 4u);
}

TEST(GuestClientExec, PollsOnceItsWindowHasPassed) {
  // Never answers the request; then pending, pending, and the stored result under the request's id.
  unsigned polls = 0;
  VirtualClient one(honestBut([&](const Heard& heard) {
    const auto* poll = std::get_if<channel::Poll>(&heard.request.body);
    if (poll == nullptr) return Saying::silence();
    EXPECT_EQ(poll->targetId, VirtualClient::REQUEST);
    return Saying::bytes(++polls < 3 ? tests::pending(heard.request.id, poll->targetId)
                                     : tests::result(poll->targetId, "late"));
  }));
  const auto outcome = one.exec();
  ASSERT_EQ(verdictOf(outcome), "ok");
  EXPECT_EQ(std::get<Finished>(outcome).deliveries, 1u);
  EXPECT_EQ(one.output.content, "late");
  EXPECT_EQ(one.guest.count("exec"), 1u);
  EXPECT_EQ(polls, 3u);
  EXPECT_EQ(one.world.elapsed(), 181 * kj::SECONDS);  // the window and two polling intervals
}

TEST(GuestClientExec, WithoutACommandTimeIsOnlyBoundByTheTotal) {
  VirtualClient one(honestBut([](const Heard& heard) {
    const auto* poll = std::get_if<channel::Poll>(&heard.request.body);
    return poll != nullptr ? Saying::bytes(tests::pending(heard.request.id, poll->targetId))
                           : Saying::silence();
  }));
  EXPECT_EQ(verdictOf(one.exec({.cmd = {"x"}, .budget = {.untimedBoundMs = 600'000}})),
            "budget untimed x1");
  EXPECT_EQ(one.world.elapsed(), 10 * kj::MINUTES);
  EXPECT_EQ(ClientOptions{}.operationBound, 4 * kj::HOURS);
}

TEST(GuestClientExec, BlamesTheCommandOnlyWhileTheGuestIsAlive) {
  const auto silentFrom = [](unsigned polls) {
    return honestBut([polls, seen = 0u](const Heard& heard) mutable {
      const auto* poll = std::get_if<channel::Poll>(&heard.request.body);
      if (poll == nullptr || ++seen > polls) return Saying::silence();
      return Saying::bytes(tests::pending(heard.request.id, poll->targetId));
    });
  };
  const channel::Exec request{.cmd = {"sleep"}, .budget = {.commandMs = 1000}};
  VirtualClient alive(silentFrom(1000));
  EXPECT_EQ(verdictOf(alive.exec(request)), "budget command x1");
  EXPECT_EQ(alive.world.elapsed(), 13 * kj::SECONDS);
  VirtualClient dead(silentFrom(0));
  EXPECT_EQ(verdictOf(dead.exec(request)), "budget channel x1");
  // Alive once, long before the bound: no verdict on the command.
  VirtualClient stalled(silentFrom(2));
  EXPECT_EQ(verdictOf(stalled.exec(
                {.cmd = {"sleep"}, .budget = {.commandMs = 600'000, .channelMs = 1000}})),
            "budget channel x1");
}

TEST(GuestClientExec, ThreeSilentWindowsAreTheEnd) {
  VirtualClient one(honestBut([](const Heard&) { return Saying::silence(); }));
  EXPECT_EQ(verdictOf(one.exec({.cmd = {"x"}, .budget = {.channelMs = 2000}})),
            "budget channel x1");
  EXPECT_EQ(one.guest.count("exec"), 1u);
  EXPECT_EQ(one.guest.count("poll"), 2u);
  EXPECT_EQ(one.world.elapsed(), 6 * kj::SECONDS);
}

TEST(GuestClientExec, AnUnknownIdIsNeverSentAgain) {
  const auto answering = [](const char* errnoName) {
    return honestBut([errnoName](const Heard& heard) {
      return heard.request.kind() == "poll"
                 ? Saying::bytes(tests::error(heard.request.id, errnoName))
                 : Saying::silence();
    });
  };
  VirtualClient unknown(answering("ENOENT"));
  EXPECT_EQ(verdictOf(unknown.exec()), "loss unknown-id x1");
  EXPECT_EQ(unknown.guest.count("exec"), 1u);
  VirtualClient stale(answering("ESTALE"));
  EXPECT_EQ(verdictOf(stale.exec()), "loss stale x1");
  VirtualClient other(answering("EIO"));
  EXPECT_EQ(verdictOf(other.exec()), "guest EIO x1");
  EXPECT_EQ(other.guest.count("ack"), 0u);
}

TEST(GuestClientExec, MapsTheGuestsErrors) {
  const auto saying = [](auto reply) {
    return honestBut(
        [reply](const Heard& heard) { return Saying::bytes(reply(heard.request.id)); });
  };
  VirtualClient timeout(saying([](auto id) { return tests::timeout(id); }));
  const auto outcome = timeout.exec();
  EXPECT_EQ(verdictOf(outcome), "budget command x1");
  EXPECT_EQ(std::get<BudgetFailure>(std::get<Failure>(outcome).reason).partial, "tail");
  EXPECT_EQ(timeout.guest.count("ack"), 1u);
  VirtualClient stale(saying([](auto id) { return tests::error(id, "ESTALE"); }));
  EXPECT_EQ(verdictOf(stale.exec()), "loss stale x1");
  EXPECT_EQ(stale.guest.count("ack"), 0u);
  VirtualClient missing(saying([](auto id) { return tests::error(id, "ENOENT"); }));
  EXPECT_EQ(verdictOf(missing.exec()), "guest ENOENT x1");
  EXPECT_EQ(missing.guest.count("ack"), 1u);
  EXPECT_EQ(missing.output.ends, 0u);
}

TEST(GuestClientRead, EndsAsFileLimitWithThePartHandedOut) {
  VirtualClient one(honestBut([](const Heard& heard) {
    const auto cap = std::get<channel::ReadFile>(heard.request.body).maxBytes;
    return Saying::bytes(
        tests::file(heard.request.id, pattern(static_cast<std::size_t>(*cap)), true));
  }));
  EXPECT_EQ(verdictOf(one.read({.path = "/f", .maxBytes = 4096})), "file-limit 4096 x1");
  EXPECT_EQ(one.output.content, pattern(4096));
  EXPECT_EQ(one.output.ends, 1u);
  EXPECT_EQ(one.guest.count("ack"), 1u);
}

TEST(GuestClientRead, AsksForSixteenMebibytesUnlessTold) {
  VirtualClient one(honestBut(
      [](const Heard& heard) { return Saying::bytes(tests::file(heard.request.id, "")); }));
  const auto outcome = one.read();
  ASSERT_EQ(verdictOf(outcome), "ok");
  EXPECT_EQ(std::get<Content>(outcome), (Content{0, sha(""), 1}));
  EXPECT_EQ(std::get<channel::ReadFile>(one.guest.heard()[0].request.body).maxBytes,
            static_cast<std::int64_t>(channel::DEFAULT_BULK_CAP));
}

TEST(GuestClientRead, RetriesThreeTimesWithGrowingPauses) {
  VirtualClient one(honestBut([](const Heard&) { return Saying::close(); }));
  EXPECT_EQ(verdictOf(one.read()), "loss reply-lost x3");
  EXPECT_EQ(one.world.elapsed(), 150 * kj::MILLISECONDS);
  EXPECT_EQ(one.verdicts.entries.size(), 1u);
}

TEST(GuestClientRead, CountsNoFailedDial) {
  VirtualClient one(honestBut([](const Heard& heard) {
                      return Saying::bytes(tests::file(heard.request.id, "x"));
                    }),
                    [](unsigned dial) -> Dial {
                      if (dial < 3) return Unreachable{};
                      return DialWorks{};
                    });
  const auto outcome = one.read();
  ASSERT_EQ(verdictOf(outcome), "ok");
  EXPECT_EQ(std::get<Content>(outcome).deliveries, 1u);
  VirtualClient two(honestBut(nullptr), [](unsigned) -> Dial { return Unreachable{}; });
  EXPECT_EQ(verdictOf(two.read()), "loss unreachable x0");
}

TEST(GuestClientRead, TimesOutWithoutARetry) {
  VirtualClient one(honestBut([](const Heard&) { return Saying::silence(); }));
  EXPECT_EQ(verdictOf(one.read({.path = "/f", .budget = {.channelMs = 700}})), "budget channel x1");
  EXPECT_EQ(one.guest.dials(), 1u);
  EXPECT_EQ(one.world.elapsed(), 700 * kj::MILLISECONDS);
  VirtualClient two(honestBut([](const Heard&) { return Saying::silence(); }));
  EXPECT_EQ(verdictOf(two.read({.path = "/f", .budget = {.untimedBoundMs = 700}})),
            "budget untimed x1");
  VirtualClient hung(honestBut(nullptr), [](unsigned) -> Dial { return DialHangs{}; });
  EXPECT_EQ(verdictOf(hung.read()), "budget channel x1");
  EXPECT_EQ(hung.world.elapsed(), 180 * kj::SECONDS);
}

TEST(GuestClientWrite, TellsDigestAndDeliveries) {
  const std::string bytes = pattern(BULK_CHUNK + 1);
  VirtualClient one(honestBut([&](const Heard& heard) {
    EXPECT_EQ(heard.bulk, bytes);
    return heard.connection == 1 ? Saying::close() : Saying::bytes(tests::ok(heard.request.id));
  }));
  const auto outcome = one.write(bytes, {.path = "/f", .mode = 0600});
  ASSERT_EQ(verdictOf(outcome), "ok");
  EXPECT_EQ(std::get<Written>(outcome), (Written{sha(bytes), 2}));
}

TEST(GuestClientWrite, ASourceThatChangesIsToBlame) {
  VirtualClient one(honestBut([](const Heard&) { return Saying::close(); }));
  tests::MemorySource source("first");
  source.instead = [&](std::uint64_t, std::size_t) {
    const std::string now = source.offsets.size() == 1 ? "first" : "other";
    return kj::Promise<kj::Array<const kj::byte>>(
        kj::heapArray<kj::byte>(reinterpret_cast<const kj::byte*>(now.data()), now.size()));
  };
  const auto outcome = one.world.run(
      one.client.writeFile(VirtualClient::REQUEST, {.path = "/f", .dataSize = 5}, source));
  EXPECT_EQ(verdictOf(outcome), "stream source-changed x1");
  EXPECT_EQ(one.guest.heard().size(), 1u);
}

TEST(GuestClientWrite, AShortOrBrokenSourceIsToBlame) {
  for (const bool isShort : {true, false}) {
    VirtualClient one(honestBut([](const Heard&) { return Saying::close(); }));
    tests::MemorySource source("12345");
    source.instead = [&](std::uint64_t, std::size_t) -> kj::Promise<kj::Array<const kj::byte>> {
      if (isShort) return kj::Array<const kj::byte>(kj::heapArray<kj::byte>(4));
      return KJ_EXCEPTION(DISCONNECTED, "the caller went away");
    };
    const auto outcome = one.world.run(
        one.client.writeFile(VirtualClient::REQUEST, {.path = "/f", .dataSize = 5}, source));
    EXPECT_EQ(verdictOf(outcome), isShort ? "stream source-short x0" : "stream failed x0");
    EXPECT_TRUE(one.guest.heard().empty());
  }
}

TEST(GuestClientStreams, AStalledSinkDoesNotBlameTheGuest) {
  VirtualClient one(honestBut([](const Heard& heard) {
    return Saying::bytes(tests::file(heard.request.id, pattern(200'000)));
  }));
  one.output.before = [&]() { return one.world.timer().afterDelay(100 * kj::SECONDS); };
  EXPECT_EQ(verdictOf(one.read({.path = "/f", .budget = {.channelMs = 1000}})), "ok");
  EXPECT_EQ(one.output.content, pattern(200'000));
  EXPECT_GE(one.world.elapsed(), 400 * kj::SECONDS);
}

TEST(GuestClientStreams, AStalledSinkIsBoundByTheTotal) {
  VirtualClient one(honestBut(
      [](const Heard& heard) { return Saying::bytes(tests::file(heard.request.id, "x")); }));
  one.output.before = []() { return kj::Promise<void>(kj::NEVER_DONE); };
  EXPECT_EQ(verdictOf(one.read({.path = "/f", .budget = {.untimedBoundMs = 5000}})),
            "budget untimed x1");
  EXPECT_EQ(one.world.elapsed(), 5 * kj::SECONDS);
}

TEST(GuestClientStreams, AGuestThatStallsAfterASlowSinkIsStillBlamed) {
  VirtualClient one(honestBut([](const Heard& heard) {
    const std::string whole = tests::file(heard.request.id, pattern(1000));
    return Saying::holding(whole.substr(0, whole.size() - 10));
  }));
  one.output.before = [&]() { return one.world.timer().afterDelay(30 * kj::SECONDS); };
  EXPECT_EQ(verdictOf(one.read({.path = "/f", .budget = {.channelMs = 1000}})),
            "budget channel x1");
  EXPECT_EQ(one.world.elapsed(), 31 * kj::SECONDS);
}

TEST(GuestClientStreams, AStalledSinkMovesTheCommandsBound) {
  VirtualClient one(honestBut(
      [](const Heard& heard) { return Saying::bytes(tests::result(heard.request.id, "abc")); }));
  one.output.before = [&]() { return one.world.timer().afterDelay(300 * kj::SECONDS); };
  EXPECT_EQ(verdictOf(one.exec({.cmd = {"x"}, .budget = {.commandMs = 50, .channelMs = 1000}})),
            "ok");
}

TEST(GuestClientStreams, AFailedSinkEndsTheOperationUnacked) {
  for (const unsigned good : {0u, 1u}) {  // the write fails, or the end
    VirtualClient one(honestBut(
        [](const Heard& heard) { return Saying::bytes(tests::file(heard.request.id, "x")); }));
    unsigned calls = 0;
    one.output.before = [&]() -> kj::Promise<void> {
      if (calls++ < good) return kj::READY_NOW;
      return KJ_EXCEPTION(DISCONNECTED, "the caller went away");
    };
    EXPECT_EQ(verdictOf(one.read()), "stream failed x1");
    EXPECT_EQ(one.guest.count("ack"), 0u);
  }
}

TEST(GuestClientStreams, BulkInTinyFramesIsHandedOnInOnePiece) {
  VirtualClient one(honestBut([](const Heard& heard) {
    std::string reply =
        tests::rawControl("{\"data_size\":4000,\"id\":\"" + toHex(heard.request.id) +
                          "\",\"kind\":\"file_data\",\"size\":4000,\"v\":3}");
    const std::string bulk = pattern(4000);
    for (const char byte : bulk) reply += tests::rawData({&byte, 1});
    return Saying::bytes(reply + tests::rawEnd(bulk));
  }));
  ASSERT_EQ(verdictOf(one.read()), "ok");
  EXPECT_EQ(one.output.content, pattern(4000));
  EXPECT_EQ(one.output.pieces.size(), 1u);
}

TEST(GuestClientAck, ASilentOrFailingAckIsSwallowedAfterAShortWait) {
  const std::vector<std::pair<std::string, kj::Duration>> cases{
      {"silence", 5 * kj::SECONDS}, {"close", 150 * kj::MILLISECONDS}, {"error", 0 * kj::SECONDS}};
  for (const auto& [what, wait] : cases) {
    VirtualClient one([&, kind = what](const Heard& heard) {
      if (heard.request.kind() != "ack") return Saying::bytes(tests::ok(heard.request.id));
      if (kind == "silence") return Saying::silence();
      if (kind == "close") return Saying::close();
      return Saying::bytes(tests::error(heard.request.id, "EIO"));
    });
    EXPECT_EQ(verdictOf(one.write("x")), "ok") << what;
    EXPECT_EQ(one.world.elapsed(), wait) << what;
    if (what != "error") {
      ASSERT_EQ(one.verdicts.entries.size(), 1u) << what;
      EXPECT_TRUE(one.verdicts.entries[0].swallowed);
      EXPECT_EQ(one.verdicts.entries[0].operation, "ack");
    }
  }
}

TEST(GuestClientAck, ATamperingAckIsRaised) {
  VirtualClient one([](const Heard& heard) {
    if (heard.request.kind() != "ack") return Saying::bytes(tests::ok(heard.request.id));
    return Saying::bytes(tests::pong(heard.request.id));
  });
  EXPECT_EQ(verdictOf(one.write("x")), "tamper wrong-kind x1");
}

TEST(GuestClientPoll, TellsWhatBecameOfTheTarget) {
  const auto poll = [](const std::function<std::string(const channel::Id&)>& reply) {
    VirtualClient one(
        [reply](const Heard& heard) { return Saying::bytes(reply(heard.request.id)); });
    auto outcome = one.poll();
    EXPECT_EQ(one.guest.heard().size(), 1u);
    return outcome;
  };
  const channel::Id target = VirtualClient::TARGET;
  EXPECT_EQ(std::get<Polled>(poll([&](auto id) { return tests::pending(id, target, 77); })),
            Polled(Running{77}));
  EXPECT_EQ(std::get<Polled>(poll([&](auto) { return tests::ok(target); })), Polled(StoredOk{}));
  EXPECT_EQ(std::get<Polled>(poll([&](auto) { return tests::file(target, "abc"); })),
            Polled(StoredFile{3}));
  const auto finished = std::get<Finished>(
      std::get<Polled>(poll([&](auto) { return tests::result(target, "abc", "de", -9); })));
  EXPECT_EQ(finished.rc, -9);
  EXPECT_EQ(finished.stdoutSha256, sha("abc"));
  EXPECT_EQ(finished.stderrSha256, sha("de"));
  EXPECT_EQ(verdictOf(poll([&](auto id) { return tests::error(id, "ENOENT"); })),
            "loss unknown-id x1");
  EXPECT_EQ(verdictOf(poll([&](auto id) { return tests::error(id, "ESTALE"); })), "loss stale x1");
  EXPECT_EQ(verdictOf(poll([&](auto) { return tests::error(target, "ENOENT"); })),
            "guest ENOENT x1");
  EXPECT_EQ(verdictOf(poll([&](auto) { return tests::timeout(target); })), "budget command x1");
}

TEST(GuestClientDiag, HandsOutEntries) {
  VirtualClient one([](const Heard& heard) {
    EXPECT_EQ(std::get<channel::Diag>(heard.request.body).maxEntries, 7);
    return Saying::bytes(tests::wire(
        heard.request.id,
        channel::DiagResult{.entries = {{.tsMs = 5, .event = "listening", .detail = "d"}},
                            .listenerRestarts = 2}));
  });
  const auto outcome = one.diag(7);
  ASSERT_EQ(verdictOf(outcome), "ok");
  EXPECT_EQ(std::get<DiagReport>(outcome).entries.size(), 1u);
  EXPECT_EQ(std::get<DiagReport>(outcome).listenerRestarts, 2u);
}

TEST(GuestClientArguments, AreRefusedBeforeAnythingIsSent) {
  VirtualClient one(honestBut(nullptr));
  const std::string nul("a\0b", 3);
  EXPECT_EQ(verdictOf(one.exec({.cmd = {}})), "argument bad-text x0");
  EXPECT_EQ(verdictOf(one.exec({.cmd = {nul}})), "argument bad-text x0");
  EXPECT_EQ(verdictOf(one.exec({.cmd = {"\xff"}})), "argument bad-text x0");
  EXPECT_EQ(verdictOf(one.exec({.cmd = std::vector<std::string>(1025, "a")})),
            "argument too-many x0");
  EXPECT_EQ(verdictOf(one.exec({.cmd = {std::string(32768, 'a')}})),
            "argument request-too-large x0");
  EXPECT_EQ(verdictOf(one.exec({.cmd = {"a"}, .budget = {.commandMs = 0}})),
            "argument bad-budget x0");
  EXPECT_EQ(verdictOf(one.exec({.cmd = {"a"}, .budget = {.commandMs = 2, .untimedBoundMs = 1}})),
            "argument bad-budget x0");
  EXPECT_EQ(verdictOf(one.ping({.channelMs = (std::int64_t{1} << 53) + 1})),
            "argument bad-budget x0");
  EXPECT_EQ(verdictOf(one.read({.path = ""})), "argument bad-text x0");
  EXPECT_EQ(verdictOf(one.read({.path = std::string(4097, 'p')})), "argument bad-text x0");
  EXPECT_EQ(verdictOf(one.read({.path = "/f", .maxBytes = (std::int64_t{1} << 30) + 1})),
            "argument bulk-too-large x0");
  EXPECT_EQ(verdictOf(one.write("", {.path = "/f", .mode = 010000})), "argument bad-mode x0");
  EXPECT_EQ(verdictOf(one.diag(0)), "argument too-many x0");
  EXPECT_EQ(verdictOf(one.diag(1001)), "argument too-many x0");
  tests::MemorySource source("");
  EXPECT_EQ(verdictOf(one.world.run(one.client.writeFile(
                VirtualClient::REQUEST, {.path = "/f", .dataSize = (256 << 20) + 1}, source))),
            "argument bulk-too-large x0");
  EXPECT_EQ(one.guest.dials(), 0u);
  EXPECT_TRUE(one.verdicts.entries.empty());
}

TEST(GuestClientCancel, DroppingThePromiseClosesTheConnection) {
  VirtualClient one(honestBut([](const Heard&) { return Saying::silence(); }));
  {
    auto promise = one.client.readFile(VirtualClient::REQUEST, {.path = "/f"}, one.output);
    EXPECT_FALSE(promise.poll(one.world.scope));
    EXPECT_EQ(one.guest.open(), 1u);
  }
  one.world.settle();
  EXPECT_EQ(one.guest.open(), 0u);
}

TEST(GuestClientTrace, DumpsTheLastFortyEventsOfAVerdict) {
  VirtualClient one(honestBut([](const Heard& heard) {
    return Saying::bytes(heard.connection < 100 ? tests::file(heard.request.id, "x")
                                                : tests::pong(heard.request.id));
  }));
  std::string verdict = "ok";
  while (verdict == "ok") {
    one.output.ends = 0;
    verdict = verdictOf(one.read());
  }
  EXPECT_EQ(verdict, "tamper wrong-kind x1");
  EXPECT_EQ(one.client.trace().size(), TRACE_CAPACITY);
  ASSERT_EQ(one.verdicts.entries.size(), 1u);
  const auto& entry = one.verdicts.entries[0];
  EXPECT_EQ(entry.operation, "read_file");
  ASSERT_EQ(entry.tail.size(), TRACE_DUMP);
  EXPECT_EQ(entry.tail.back().step, TraceStep::REFUSED);
  EXPECT_EQ(entry.tail[TRACE_DUMP - 2].step, TraceStep::GOT_CONTROL);
  EXPECT_EQ(entry.tail[TRACE_DUMP - 2].kind, "pong");
}

}  // namespace
}  // namespace cordon::parser
