#include "services/guest/spool.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace cordon::guest {
namespace {

std::string contentOf(const Spool& spool, std::size_t step) {
  std::string content;
  std::string piece(step, '\0');
  for (;;) {
    auto got = spool.read(content.size(), std::as_writable_bytes(std::span(piece)));
    EXPECT_GE(got, 0);
    if (got <= 0) return content;
    content.append(piece, 0, static_cast<std::size_t>(got));
  }
}

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t at = 0; at < size; ++at) text[at] = static_cast<char>(at * 13 + at / 251);
  return text;
}

TEST(SpoolTest, KeepsBytesInMemoryUpToItsLimitAndOnDiskBeyond) {
  for (std::size_t size : {0U, 1U, 4096U, 65536U, 65537U, 300000U}) {
    Spool spool(65536);
    std::string content = pattern(size);
    for (std::size_t at = 0; at < size; at += 7001) {
      EXPECT_EQ(spool.append(std::as_bytes(
                    std::span(content).subspan(at, std::min<std::size_t>(7001, size - at)))),
                0);
    }
    spool.shrink();
    EXPECT_EQ(spool.size(), size);
    EXPECT_EQ(spool.onDisk(), size > 65536) << size;
    EXPECT_EQ(contentOf(spool, 10007), content);
  }
}

TEST(SpoolTest, AMovedSpoolKeepsItsContent) {
  for (std::size_t limit : {std::size_t{10}, Spool::IN_MEMORY}) {
    Spool first(limit);
    first.append(std::as_bytes(std::span("abcdefghijklmnop", 16)));
    Spool second = std::move(first);
    second.append(std::as_bytes(std::span("q", 1)));
    EXPECT_EQ(contentOf(second, 5), "abcdefghijklmnopq");
  }
}

TEST(SpoolTest, ReadingAtTheEndGivesNothing) {
  Spool spool(Spool::IN_MEMORY);
  std::array<std::byte, 4> out{};
  EXPECT_EQ(spool.read(0, out), 0);
  spool.append(std::as_bytes(std::span("ab", 2)));
  EXPECT_EQ(spool.read(2, out), 0);
  EXPECT_EQ(spool.read(5, out), 0);
  EXPECT_EQ(spool.read(1, out), 1);
}

}  // namespace
}  // namespace cordon::guest
