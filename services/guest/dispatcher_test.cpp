#include "services/guest/dispatcher.h"

#include <new>
#include <stdexcept>

#include <gtest/gtest.h>

#include "common/channel/decoder.h"

namespace cordon::guest {
namespace {

using channel::DiagLevel;
using channel::Error;

channel::Message decoded(const Reply& reply) {
  auto payload = std::as_bytes(std::span(reply.control)).subspan(channel::FRAME_HEADER_SIZE);
  auto message = channel::decodeControl(payload);
  EXPECT_TRUE(std::holds_alternative<channel::Message>(message));
  return std::get<channel::Message>(message);
}

Request requestOf(channel::Body body) {
  channel::Id id;
  id.bytes[3] = 7;
  return {{id, std::move(body)}, Spool(Spool::IN_MEMORY)};
}

channel::Exec someExec() {
  channel::Exec exec;
  exec.cmd = {"x"};
  return exec;
}

TEST(DispatcherTest, ACrashIsAStoredEIOAndRetiresTheThread) {
  DiagRing diag;
  int runs = 0;
  Dispatcher dispatcher(diag, [&](const Request&) -> Answer {
    ++runs;
    if (runs == 1) throw std::runtime_error("lost my way");
    throw 5;
  });
  auto request = requestOf(someExec());
  auto answer = dispatcher.answer(request);
  EXPECT_FALSE(answer.threadUsable);
  EXPECT_EQ(std::get<Error>(decoded(*answer.reply).body).errnoName, "EIO");
  auto entry = diag.newest(1).at(0);
  EXPECT_EQ(entry.event, "handler-crashed");
  EXPECT_EQ(entry.detail, "exec: lost my way");
  EXPECT_EQ(entry.requestId, channel::toHex(request.message.id));
  // The id does not hang and does not run again.
  auto again = dispatcher.answer(request);
  EXPECT_EQ(again.reply, answer.reply);
  EXPECT_TRUE(again.threadUsable);
  EXPECT_EQ(runs, 1);
  request.message.id.bytes[0] = 1;
  EXPECT_EQ(std::get<Error>(decoded(*dispatcher.answer(request).reply).body).errnoName, "EIO");
  EXPECT_EQ(runs, 2);
}

TEST(DispatcherTest, AReplyThatCannotBeEncodedIsEIOWithAnEntry) {
  DiagRing diag;
  Dispatcher dispatcher(diag, [&](const Request& request) -> Answer {
    channel::ExecResult result;
    result.stdoutSize = 5;  // without the bulk that it promises
    return {makeReply(diag, request.message.id, result)};
  });
  auto answer = dispatcher.answer(requestOf(someExec()));
  EXPECT_EQ(std::get<Error>(decoded(*answer.reply).body).errnoName, "EIO");
  EXPECT_FALSE(answer.reply->hasBulk);
  auto entry = diag.newest(1).at(0);
  EXPECT_EQ(entry.event, "encode-failed");
  EXPECT_EQ(entry.level, DiagLevel::ERROR);
}

TEST(DispatcherTest, OnlyWhatAGuestServesIsPerformed) {
  DiagRing diag;
  int runs = 0;
  Dispatcher dispatcher(diag, [&](const Request& request) -> Answer {
    ++runs;
    return {makeReply(diag, request.message.id, channel::Ok{})};
  });
  auto answer = dispatcher.answer(requestOf(channel::Forward{"h", 1, {}}));
  EXPECT_EQ(std::get<Error>(decoded(*answer.reply).body).errnoName, "EPROTO");
  EXPECT_EQ(runs, 0);
}

TEST(DispatcherTest, SessionsDiffer) {
  DiagRing diag;
  Dispatcher first(diag, nullptr);
  Dispatcher second(diag, nullptr);
  EXPECT_NE(first.sessionId(), second.sessionId());
}

TEST(DiagRingTest, KeepsTheNewest256InOrder) {
  DiagRing diag;
  for (int count = 0; count < 300; ++count) diag.info("event", std::to_string(count));
  auto entries = diag.newest(1000);
  ASSERT_EQ(entries.size(), 256U);
  EXPECT_EQ(entries.front().detail, "44");
  EXPECT_EQ(entries.back().detail, "299");
  EXPECT_EQ(diag.newest(3).front().detail, "297");
}

TEST(DiagRingTest, CutsTextToCleanUtf8) {
  DiagRing diag;
  std::string text(2047, 'a');
  diag.warn("event", text + "\xc3\xa9");
  EXPECT_EQ(diag.newest(1).at(0).detail, text);
  diag.warn("event", std::string("a\xff") + '\0' + "b");
  EXPECT_EQ(diag.newest(1).at(0).detail, "ab");
}

TEST(DiagRingTest, ItsResultFitsIntoAFrameByDroppingTheOldest) {
  DiagRing diag;
  for (int count = 0; count < 256; ++count) {
    diag.info("event", std::to_string(1000 + count) + std::string(1000, 'd'));
  }
  diag.countListenerRestart();
  channel::Id id;
  auto reply = makeDiagResult(diag, id, 1000);
  auto result = std::get<channel::DiagResult>(decoded(*reply).body);
  EXPECT_EQ(result.listenerRestarts, 1);
  ASSERT_FALSE(result.entries.empty());
  EXPECT_EQ(result.entries.back().detail.substr(0, 4), "1255");
  // Not one more would have fitted.
  std::size_t entrySize = reply->control.size() / result.entries.size();
  EXPECT_GT(reply->control.size() + entrySize + 2, channel::MAX_FRAME_PAYLOAD);
  EXPECT_LE(reply->control.size(), channel::MAX_FRAME_PAYLOAD + channel::FRAME_HEADER_SIZE);
  // As many as asked for where they fit.
  auto few = std::get<channel::DiagResult>(decoded(*makeDiagResult(diag, id, 7)).body);
  EXPECT_EQ(few.entries.size(), 7U);
}

}  // namespace
}  // namespace cordon::guest
