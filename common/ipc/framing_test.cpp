#include "common/ipc/framing.h"

#include <bit>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace cordon::ipc {
namespace {

constexpr std::size_t LIMIT = std::size_t{1} << 20;

std::array<std::byte, WORD_BYTES> firstWord(std::uint32_t countLessOne, std::uint32_t size) {
  std::array<std::byte, WORD_BYTES> word{};
  std::memcpy(word.data(), &countLessOne, 4);
  std::memcpy(word.data() + 4, &size, 4);
  return word;
}

ErrorCode errorOf(std::uint32_t countLessOne, std::uint32_t size) {
  const auto result = readStart(firstWord(countLessOne, size), LIMIT);
  EXPECT_TRUE(std::holds_alternative<ErrorCode>(result)) << countLessOne << " " << size;
  const auto* code = std::get_if<ErrorCode>(&result);
  return code == nullptr ? ErrorCode::INTERNAL : *code;
}

MessageStart startOf(std::uint32_t countLessOne, std::uint32_t size) {
  const auto result = readStart(firstWord(countLessOne, size), LIMIT);
  EXPECT_TRUE(std::holds_alternative<MessageStart>(result)) << countLessOne << " " << size;
  const auto* start = std::get_if<MessageStart>(&result);
  return start == nullptr ? MessageStart{} : *start;
}

std::vector<std::byte> tableOf(std::vector<std::uint32_t> sizes) {
  if (sizes.size() % 2 != 0) sizes.push_back(0);
  std::vector<std::byte> bytes(sizes.size() * 4);
  if (!bytes.empty()) std::memcpy(bytes.data(), sizes.data(), bytes.size());
  return bytes;
}

TEST(Framing, RefusesTheCountThatWraps) {
  EXPECT_EQ(errorOf(0xffffffff, 1), ErrorCode::BAD_MESSAGE);
}

TEST(Framing, RefusesMoreThan512Segments) {
  EXPECT_EQ(startOf(511, 0).segments, 512u);
  EXPECT_EQ(errorOf(512, 0), ErrorCode::MESSAGE_TOO_LARGE);
  EXPECT_EQ(errorOf(0x7fffffff, 0), ErrorCode::MESSAGE_TOO_LARGE);
  EXPECT_EQ(errorOf(0xfffffffe, 0), ErrorCode::MESSAGE_TOO_LARGE);
}

TEST(Framing, RefusesAFirstSegmentOverTheLimitAtOnce) {
  EXPECT_EQ(startOf(0, LIMIT / 8 - 1).firstSegmentWords, LIMIT / 8 - 1);
  EXPECT_EQ(errorOf(0, LIMIT / 8), ErrorCode::MESSAGE_TOO_LARGE);
  EXPECT_EQ(errorOf(0, 0xffffffff), ErrorCode::MESSAGE_TOO_LARGE);
}

TEST(Framing, CountsTheTable) {
  EXPECT_EQ(startOf(0, 0).restOfTable(), 0u);
  EXPECT_EQ(startOf(1, 0).restOfTable(), 8u);
  EXPECT_EQ(startOf(2, 0).restOfTable(), 8u);
  EXPECT_EQ(startOf(3, 0).restOfTable(), 16u);
  EXPECT_EQ(startOf(511, 0).restOfTable(), 2048u);
}

TEST(Framing, SumsTheSegments) {
  SegmentSizes sizes;
  EXPECT_EQ(readTable(startOf(2, 7), tableOf({5, 3}), LIMIT, sizes), std::nullopt);
  EXPECT_EQ(sizes.totalWords, 15u);
  EXPECT_EQ(sizes.words[0], 7u);
  EXPECT_EQ(sizes.words[2], 3u);
}

TEST(Framing, RefusesSegmentsThatTogetherExceedTheLimit) {
  SegmentSizes sizes;
  const std::uint32_t all = LIMIT / 8 - 2;
  EXPECT_EQ(readTable(startOf(1, 10), tableOf({all - 10}), LIMIT, sizes), std::nullopt);
  EXPECT_EQ(readTable(startOf(1, 10), tableOf({all - 9}), LIMIT, sizes),
            ErrorCode::MESSAGE_TOO_LARGE);
  // A sum that would be small in 32 bits.
  EXPECT_EQ(readTable(startOf(2, 0), tableOf({0xffffffff, 2}), LIMIT, sizes),
            ErrorCode::MESSAGE_TOO_LARGE);
  EXPECT_EQ(readTable(startOf(511, 0), tableOf(std::vector<std::uint32_t>(512, 0xffffffff)), LIMIT,
                      sizes),
            ErrorCode::MESSAGE_TOO_LARGE);
}

TEST(Framing, RefusesATableOfAnotherLength) {
  SegmentSizes sizes;
  EXPECT_EQ(readTable(startOf(1, 0), {}, LIMIT, sizes), ErrorCode::BAD_MESSAGE);
}

}  // namespace
}  // namespace cordon::ipc
