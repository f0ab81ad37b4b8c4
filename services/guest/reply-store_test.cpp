#include "services/guest/reply-store.h"

#include <gtest/gtest.h>

namespace cordon::guest {
namespace {

channel::Id idOf(std::uint32_t number) {
  channel::Id id;
  for (std::size_t at = 0; at < 4; ++at)
    id.bytes[at] = static_cast<std::uint8_t>(number >> (8 * at));
  return id;
}

ReplyPtr replyOf(std::size_t bytes) {
  auto reply = std::make_shared<Reply>();
  reply->control.assign(bytes, 'c');
  return reply;
}

ReplyStore::RunningPtr begin(ReplyStore& store, std::uint32_t number) {
  auto claim = store.claim(idOf(number));
  auto* run = std::get_if<ReplyStore::Run>(&claim);
  EXPECT_NE(run, nullptr) << number;
  return run != nullptr ? run->running : nullptr;
}

void store(ReplyStore& store, std::uint32_t number, std::size_t bytes = 1) {
  store.complete(begin(store, number), replyOf(bytes));
}

bool stale(ReplyStore& store, std::uint32_t number) {
  return std::holds_alternative<ReplyStore::Stale>(store.claim(idOf(number)));
}
bool stored(ReplyStore& store, std::uint32_t number) {
  return std::holds_alternative<ReplyPtr>(store.poll(idOf(number)));
}
bool unknown(ReplyStore& store, std::uint32_t number) {
  return std::holds_alternative<ReplyStore::Unknown>(store.poll(idOf(number)));
}

TEST(BoundedIdsTest, ForgetsItsOldest) {
  BoundedIds ids(3);
  for (std::uint32_t number : {1U, 2U, 3U, 2U, 4U}) ids.insert(idOf(number));
  EXPECT_FALSE(ids.contains(idOf(1)));
  for (std::uint32_t number : {2U, 3U, 4U}) EXPECT_TRUE(ids.contains(idOf(number)));
  EXPECT_TRUE(ids.erase(idOf(3)));
  EXPECT_FALSE(ids.erase(idOf(3)));
  ids.insert(idOf(5));
  EXPECT_TRUE(ids.contains(idOf(2)));
  ids.insert(idOf(6));
  EXPECT_FALSE(ids.contains(idOf(2)));
}

TEST(ReplyStoreTest, ARunningIdIsAttachedTo) {
  ReplyStore replies;
  auto running = begin(replies, 1);
  auto claim = replies.claim(idOf(1));
  auto* attach = std::get_if<ReplyStore::Attach>(&claim);
  ASSERT_NE(attach, nullptr);
  EXPECT_TRUE(std::holds_alternative<ReplyStore::Pending>(replies.poll(idOf(1))));
  auto reply = replyOf(5);
  replies.complete(running, reply);
  EXPECT_EQ(replies.await(attach->running), reply);
  EXPECT_EQ(std::get<ReplyPtr>(replies.claim(idOf(1))), reply);
}

TEST(ReplyStoreTest, WhoIsAttachedGetsEvenAReplyThatIsNotKept) {
  ReplyStore replies;
  auto running = begin(replies, 1);
  auto claim = replies.claim(idOf(1));
  auto reply = replyOf(MAX_STORED_BYTES + 1);
  replies.complete(running, reply);
  EXPECT_EQ(replies.await(std::get<ReplyStore::Attach>(claim).running), reply);
  EXPECT_TRUE(stale(replies, 1));
}

TEST(ReplyStoreTest, ExactlyTheBoundOfBytesIsKept) {
  ReplyStore replies;
  store(replies, 1, MAX_STORED_BYTES / 2);
  store(replies, 2, MAX_STORED_BYTES / 2);
  EXPECT_TRUE(stored(replies, 1));
  store(replies, 3, 1);
  EXPECT_TRUE(stale(replies, 1));
  EXPECT_TRUE(stored(replies, 2));
  EXPECT_TRUE(stored(replies, 3));
  store(replies, 4, MAX_STORED_BYTES);
  EXPECT_TRUE(stored(replies, 4));
  for (std::uint32_t number : {1U, 2U, 3U}) EXPECT_TRUE(stale(replies, number));
}

TEST(ReplyStoreTest, KeepsTheNewest256) {
  ReplyStore replies;
  for (std::uint32_t number = 0; number < MAX_STORED_REPLIES + 2; ++number) store(replies, number);
  EXPECT_TRUE(stale(replies, 0));
  EXPECT_TRUE(stale(replies, 1));
  for (std::uint32_t number = 2; number < MAX_STORED_REPLIES + 2; ++number) {
    EXPECT_TRUE(stored(replies, number));
  }
}

TEST(ReplyStoreTest, Keeps4096LiveTombstones) {
  ReplyStore replies;
  auto total = static_cast<std::uint32_t>(MAX_STORED_REPLIES + MAX_TOMBSTONES);
  for (std::uint32_t number = 0; number < total; ++number) store(replies, number);
  EXPECT_TRUE(stale(replies, 0));
  // An acknowledged tombstone makes room for one more.
  replies.acknowledge(idOf(100));
  store(replies, total);
  EXPECT_TRUE(stale(replies, 0));
  store(replies, total + 1);
  EXPECT_TRUE(unknown(replies, 0));
  EXPECT_TRUE(stale(replies, 1));
}

TEST(ReplyStoreTest, Remembers4096AcknowledgedIds) {
  ReplyStore replies;
  for (std::uint32_t number = 0; number <= MAX_ACKNOWLEDGED; ++number) {
    store(replies, number);
    replies.acknowledge(idOf(number));
    EXPECT_TRUE(unknown(replies, number));
  }
  EXPECT_TRUE(stale(replies, 1));
  EXPECT_TRUE(stale(replies, static_cast<std::uint32_t>(MAX_ACKNOWLEDGED)));
  EXPECT_TRUE(std::holds_alternative<ReplyStore::Run>(replies.claim(idOf(0))));
}

TEST(ReplyStoreTest, AnAckOfTheUnknownIsNotRemembered) {
  ReplyStore replies;
  replies.acknowledge(idOf(9));
  store(replies, 9);
  EXPECT_TRUE(stored(replies, 9));
}

}  // namespace
}  // namespace cordon::guest
