// At most once, and nothing lost: resends, polls, acks, eviction.
#include <filesystem>
#include <thread>
#include <unistd.h>
#include <vector>

#include "common/channel/encoder.h"
#include "services/guest/agent-fixture.h"
#include "services/guest/reply-store.h"

namespace cordon::guest {
namespace {

using channel::Ack;
using channel::Error;
using channel::ExecResult;
using channel::FileData;
using channel::Id;
using channel::Message;
using channel::Ok;
using channel::Poll;
using channel::ReadFile;

class DedupeTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (!IsSkipped()) start();
  }

  Got poll(const Id& target) const { return call({freshId(), Poll{target}}); }
  void ack(const Id& target) const { ask(Ack{target}).as<Ok>(); }
  std::string errnoOf(const Got& got) const { return got.as<Error>().errnoName; }
  std::string home(const std::string& name) const { return world.home("agent") + "/" + name; }
  // How often a script that appends a line to `runs` ran.
  std::size_t runs() const { return readWhole(home("runs")).size() / 2; }
  // A file of `size` bytes and the request that reads all of it.
  Message reading(std::size_t size) const {
    std::string path = world.root + "/file-" + std::to_string(size);
    writeWhole(path, std::string(size, 'r'));
    ReadFile read;
    read.path = path;
    read.maxBytes = channel::MAX_DECLARED_BULK;
    return {freshId(), read};
  }
  static std::string frames(const Message& message) {
    return std::get<std::string>(channel::encodeMessage(message, {}));
  }
};

TEST_F(DedupeTest, OneIdOnTwentyConnectionsRunsOnce) {
  for (int round = 0; round < 5; ++round) {
    Message message{freshId(), shell("echo x >>runs; sleep 0.1; echo $$")};
    std::string bytes = frames(message);
    std::vector<Got> got(20);
    std::vector<std::thread> callers;
    for (Got& one : got) {
      callers.emplace_back([&] {
        Fd socket = connect();
        if (send(socket, bytes)) one = receive(socket);
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(runs(), static_cast<std::size_t>(round) + 1);
    for (const Got& one : got) {
      ASSERT_TRUE(one.message);
      EXPECT_EQ(*one.message, *got[0].message);
      EXPECT_EQ(one.bulk, got[0].bulk);
    }
  }
}

TEST_F(DedupeTest, AResendReplaysWhateverItAsksNow) {
  Message message{freshId(), shell("echo x >>runs; echo first")};
  auto first = call(message);
  auto again = call(message);
  EXPECT_EQ(*first.message, *again.message);
  EXPECT_EQ(again.bulk, "first\n");
  auto other = call({message.id, shell("echo x >>runs; echo second")});
  EXPECT_EQ(other.bulk, "first\n");
  EXPECT_EQ(runs(), 1U);
  EXPECT_EQ(poll(message.id).bulk, "first\n");
}

TEST_F(DedupeTest, AReplyLostWithItsConnectionIsStillThere) {
  Message message{freshId(),
                  shell("echo x >>runs; while [ ! -e go ]; do sleep 0.01; done; echo end")};
  {
    Fd socket = connect();
    ASSERT_TRUE(send(socket, frames(message)));
    ASSERT_TRUE(eventually([&] { return runs() == 1; }));
  }
  auto pending = poll(message.id);
  EXPECT_EQ(pending.as<channel::Pending>().targetId, message.id);
  Fd attached = connect();
  ASSERT_TRUE(send(attached, frames(message)));
  writeWhole(home("go"), "");
  EXPECT_EQ(receive(attached).bulk, "end\n");
  EXPECT_EQ(call(message).bulk, "end\n");
  EXPECT_EQ(runs(), 1U);
}

TEST_F(DedupeTest, PollTellsPendingThenTheReplyOfTheTarget) {
  Message message{freshId(), shell("while [ ! -e go ]; do sleep 0.01; done; exit 9")};
  Fd socket = connect();
  ASSERT_TRUE(send(socket, frames(message)));
  std::int64_t elapsed = -1;
  ASSERT_TRUE(eventually([&] {
    auto got = poll(message.id);
    if (!std::holds_alternative<channel::Pending>(got.message->body)) return false;
    elapsed = got.as<channel::Pending>().elapsedMs;
    return elapsed >= 100;
  }));
  EXPECT_LT(elapsed, 20'000);
  writeWhole(home("go"), "");
  EXPECT_EQ(receive(socket).as<ExecResult>().rc, 9);
  auto replay = poll(message.id);
  EXPECT_EQ(replay.message->id, message.id);
  EXPECT_EQ(replay.as<ExecResult>().rc, 9);
}

TEST_F(DedupeTest, PollOfAnUnknownIdIsENOENTUnderItsOwnId) {
  Message message{freshId(), Poll{freshId()}};
  auto got = call(message);
  EXPECT_EQ(got.message->id, message.id);
  EXPECT_EQ(errnoOf(got), "ENOENT");
}

TEST_F(DedupeTest, AfterAnAckAResendIsESTALEAndAPollENOENT) {
  Message message{freshId(), shell("echo x >>runs")};
  call(message).as<ExecResult>();
  ack(message.id);
  auto resent = call(message);
  EXPECT_EQ(errnoOf(resent), "ESTALE");
  EXPECT_EQ(resent.message->id, message.id);
  EXPECT_EQ(errnoOf(poll(message.id)), "ENOENT");
  ack(message.id);
  EXPECT_EQ(errnoOf(call(message)), "ESTALE");
  EXPECT_EQ(runs(), 1U);
}

TEST_F(DedupeTest, AnAckOfTheUnknownOrTheRunningChangesNothing) {
  Message message{freshId(), shell("echo x >>runs; while [ ! -e go ]; do sleep 0.01; done")};
  ack(message.id);
  Fd socket = connect();
  ASSERT_TRUE(send(socket, frames(message)));
  ASSERT_TRUE(eventually([&] { return runs() == 1; }));
  ack(message.id);
  EXPECT_EQ(poll(message.id).as<channel::Pending>().targetId, message.id);
  writeWhole(home("go"), "");
  EXPECT_EQ(receive(socket).as<ExecResult>().rc, 0);
  EXPECT_EQ(poll(message.id).as<ExecResult>().rc, 0);
}

TEST_F(DedupeTest, The257thReplyEvictsTheFirst) {
  Message first{freshId(), shell("echo x >>runs")};
  call(first).as<ExecResult>();
  ReadFile read;
  read.path = "/missing";
  Message second{freshId(), read};
  EXPECT_EQ(errnoOf(call(second)), "ENOENT");
  for (std::size_t stored = 2; stored < MAX_STORED_REPLIES; ++stored) ask(read);
  EXPECT_EQ(poll(first.id).as<ExecResult>().rc, 0);
  ask(read);
  auto evicted = poll(first.id);
  EXPECT_EQ(errnoOf(evicted), "ESTALE");
  EXPECT_NE(evicted.message->id, first.id);
  EXPECT_EQ(errnoOf(call(first)), "ESTALE");
  EXPECT_EQ(runs(), 1U);
  EXPECT_EQ(errnoOf(poll(second.id)), "ENOENT");
  EXPECT_EQ(poll(second.id).message->id, second.id);
  // An ack takes the tombstone, but not the memory that it ran.
  ack(first.id);
  EXPECT_EQ(errnoOf(poll(first.id)), "ENOENT");
  EXPECT_EQ(errnoOf(call(first)), "ESTALE");
  EXPECT_EQ(runs(), 1U);
}

TEST_F(DedupeTest, RepliesAreKeptUpTo64MebibytesInAll) {
  std::vector<Message> reads;
  for (int count = 0; count < 4; ++count) {
    reads.push_back(reading(16u << 20));
    EXPECT_EQ(call(reads.back()).bulk.size(), 16u << 20);
  }
  // Four times 16 MiB and their control frames are over the bound: the oldest is gone, the others
  // stay.
  EXPECT_EQ(errnoOf(poll(reads[0].id)), "ESTALE");
  for (int kept = 1; kept < 4; ++kept) {
    EXPECT_EQ(poll(reads[static_cast<std::size_t>(kept)].id).bulk.size(), 16u << 20);
  }
  // An ack makes room at once.
  ack(reads[1].id);
  auto more = reading(15u << 20);
  call(more).as<FileData>();
  EXPECT_EQ(poll(reads[2].id).bulk.size(), 16u << 20);
}

TEST_F(DedupeTest, AReplyOver64MebibytesIsSentOnceThenATombstone) {
  Message small{freshId(), shell("echo small")};
  call(small).as<ExecResult>();
  auto large = reading((64u << 20) + 1);
  auto got = call(large);
  EXPECT_EQ(got.as<FileData>(), (FileData{(64 << 20) + 1, false, (64 << 20) + 1}));
  EXPECT_TRUE(got.bulk == std::string((64u << 20) + 1, 'r'));
  EXPECT_EQ(errnoOf(poll(large.id)), "ESTALE");
  EXPECT_EQ(errnoOf(call(large)), "ESTALE");
  // It pushed nothing out.
  EXPECT_EQ(poll(small.id).bulk, "small\n");
}

TEST_F(DedupeTest, KindsThatAGuestDoesNotServeAreStoredEPROTO) {
  channel::Pong pong;
  pong.session = freshId();
  const std::vector<channel::Body> bodies{channel::Forward{"10.0.0.1", 22, {}},
                                          channel::Realize{},
                                          channel::Teardown{},
                                          channel::StageReport{},
                                          channel::Heartbeat{},
                                          pong,
                                          ExecResult{},
                                          FileData{},
                                          Ok{},
                                          channel::Pending{freshId(), 1},
                                          channel::ForwardOk{freshId()},
                                          channel::DiagResult{},
                                          Error{"EIO", "x", std::nullopt, std::nullopt}};
  for (const auto& body : bodies) {
    Message message{freshId(), body};
    EXPECT_EQ(errnoOf(call(message)), "EPROTO") << message.kind();
    auto replay = poll(message.id);
    EXPECT_EQ(replay.message->id, message.id);
    EXPECT_EQ(errnoOf(replay), "EPROTO");
  }
}

TEST_F(DedupeTest, AnswersThatAreNotDurableAreFresh) {
  Message ping{freshId(), channel::Ping{}};
  call(ping).as<channel::Pong>();
  EXPECT_EQ(errnoOf(poll(ping.id)), "ENOENT");
  call({ping.id, shell("exit 3")}).as<ExecResult>();
}

TEST_F(DedupeTest, PollsGetInWhileManyCommandsRun) {
  std::vector<Fd> sockets;
  std::vector<Id> ids;
  for (int count = 0; count < 60; ++count) {
    Message message{freshId(), shell("while [ ! -e go ]; do sleep 0.1; done")};
    ids.push_back(message.id);
    sockets.push_back(connect());
    ASSERT_TRUE(send(sockets.back(), frames(message)));
  }
  for (const Id& id : ids) {
    ASSERT_TRUE(eventually([&] {
      auto got = poll(id);
      return got.message && std::holds_alternative<channel::Pending>(got.message->body);
    }));
  }
  writeWhole(home("go"), "");
  for (const Fd& socket : sockets) EXPECT_EQ(receive(socket).as<ExecResult>().rc, 0);
}

TEST_F(DedupeTest, DiagNamesEachRequestButPolls) {
  Message exec{freshId(), shell("exit 0")};
  call(exec);
  poll(exec.id);
  poll(freshId());
  ack(exec.id);
  channel::Diag two;
  two.maxEntries = 3;
  Message asked{freshId(), two};
  auto entries = call(asked).as<channel::DiagResult>().entries;
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].event, "request");
  EXPECT_EQ(entries[0].requestId, channel::toHex(exec.id));
  EXPECT_EQ(entries[0].detail, "exec");
  EXPECT_EQ(entries[0].level, channel::DiagLevel::INFO);
  EXPECT_EQ(entries[1].detail, "ack");
  EXPECT_EQ(entries[2].detail, "diag");
  EXPECT_EQ(entries[2].requestId, channel::toHex(asked.id));
  EXPECT_LE(entries[0].tsMs, entries[2].tsMs);
}

}  // namespace
}  // namespace cordon::guest
