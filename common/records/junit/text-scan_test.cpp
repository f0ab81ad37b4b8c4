#include "common/records/junit/text-scan.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace cordon::records {
namespace {

using Fault = TextScan::Fault;

std::optional<Fault> scanWhole(std::string_view text) {
  TextScan scan;
  if (const auto fault = scan.scan(text)) return fault;
  return scan.finish();
}

std::optional<Fault> scanCut(std::string_view text, std::size_t size) {
  TextScan scan;
  for (; !text.empty(); text.remove_prefix(std::min(size, text.size()))) {
    if (const auto fault = scan.scan(text.substr(0, size))) return fault;
  }
  return scan.finish();
}

std::string show(const std::optional<Fault>& fault) {
  if (!fault) return "good";
  return std::to_string(fault->offset) + " " + std::string(nameOf(fault->reason));
}

// By the definition: RFC 3629 and XML 1.0, production 2.
std::string encode(std::uint32_t point) {
  const auto byte = [](std::uint32_t value) { return static_cast<char>(value); };
  const auto more = [&](unsigned shift) { return byte(0x80 | ((point >> shift) & 0x3f)); };
  if (point < 0x80) return {byte(point)};
  if (point < 0x800) return {byte(0xc0 | (point >> 6)), more(0)};
  if (point < 0x10000) return {byte(0xe0 | (point >> 12)), more(6), more(0)};
  return {byte(0xf0 | (point >> 18)), more(12), more(6), more(0)};
}

TEST(TextScan, TakesEachCharacterOfXmlAndNoOther) {
  for (std::uint32_t point = 0; point <= 0x110000; ++point) {
    const bool utf8 = (point < 0xd800 || point > 0xdfff) && point <= 0x10ffff;
    const bool character = point == 9 || point == 10 || point == 13 ||
                           (point >= 0x20 && point != 0xfffe && point != 0xffff);
    const std::string expected = !utf8 ? "1 not-utf8" : !character ? "1 illegal-character" : "good";
    const std::string text = "a" + encode(point) + "b";
    ASSERT_EQ(show(scanWhole(text)), expected) << std::hex << point;
    ASSERT_EQ(show(scanCut(text, 1)), expected) << std::hex << point;
  }
}

TEST(TextScan, FindsAFaultWhereverItStands) {
  for (const std::string fault : {"\x01", "\x80", "\xff", "\xc0\xaf", "\xe0\x80\x80",
                                  "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xef\xbf\xbf"}) {
    const char* reason =
        fault == "\x01" || fault == "\xef\xbf\xbf" ? "illegal-character" : "not-utf8";
    for (std::size_t before = 0; before < 200; ++before) {
      std::string text(before, 'x');
      text += fault;
      text.append(70, 'y');
      const std::string expected = std::to_string(before) + " " + reason;
      ASSERT_EQ(show(scanWhole(text)), expected);
      for (const std::size_t size : {1, 2, 3, 4, 64, 65}) {
        ASSERT_EQ(show(scanCut(text, size)), expected) << size;
      }
    }
  }
}

TEST(TextScan, DoesNotLetACharacterBeCutByTheEnd) {
  for (const std::string cut : {"\xc3", "\xe2\x82", "\xe2", "\xf0\x9f\x98", "\xf0\x9f", "\xf0"}) {
    EXPECT_EQ(show(scanWhole("abc" + cut)), "3 not-utf8");
    EXPECT_EQ(show(scanCut("abc" + cut, 1)), "3 not-utf8");
  }
}

// What may still become a character is not yet a fault, and what may not is one at once: expat must
// not see it first.
TEST(TextScan, SaysSoAtOnce) {
  for (const std::string begun : {"\xc2", "\xe0", "\xed", "\xed\x9f", "\xf0", "\xf4", "\xf4\x8f"}) {
    EXPECT_EQ(show(TextScan().scan(begun)), "good");
  }
  for (const std::string lost : {"\xc1", "\xe0\x9f", "\xed\xa0", "\xf0\x8f", "\xf4\x90", "\xf5",
                                 "\xe2\x82x", "\xf0\x9f\x98x"}) {
    EXPECT_EQ(show(TextScan().scan(lost)), "0 not-utf8");
  }
}

TEST(CutText, CutsNoCharacter) {
  const std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
  const std::vector<std::size_t> expected{0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (std::size_t most = 0; most < expected.size(); ++most) {
    EXPECT_EQ(cutText(text, most).size(), expected[most]) << most;
  }
}

}  // namespace
}  // namespace cordon::records
