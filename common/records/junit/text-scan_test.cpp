#include "common/records/junit/text-scan.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace cordon::records {
namespace {

std::string show(std::string_view text) {
  const TextScan scan = scanText(text);
  std::string shown = std::to_string(scan.good);
  if (scan.fault != Reason::NONE) shown += " " + std::string(nameOf(scan.fault));
  if (scan.cutLength > 0) shown += " cut of " + std::to_string(scan.cutLength);
  return shown;
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
    const std::string text = "a" + encode(point) + "b";
    const std::string expected = !utf8        ? "1 not-utf8"
                                 : !character ? "1 illegal-character"
                                              : std::to_string(text.size());
    ASSERT_EQ(show(text), expected) << std::hex << point;
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
      ASSERT_EQ(show(text), expected);
    }
  }
}

// What may still become a character is not yet a fault, and what may not is one at once.
TEST(TextScan, TellsACharacterThatIsCut) {
  for (const auto& [cut, length] : std::vector<std::pair<std::string, int>>{{"\xc2", 2},
                                                                            {"\xe0", 3},
                                                                            {"\xe2\x82", 3},
                                                                            {"\xed", 3},
                                                                            {"\xed\x9f", 3},
                                                                            {"\xf0", 4},
                                                                            {"\xf0\x9f", 4},
                                                                            {"\xf0\x9f\x98", 4},
                                                                            {"\xf4", 4},
                                                                            {"\xf4\x8f", 4}}) {
    EXPECT_EQ(show("abc" + cut), "3 cut of " + std::to_string(length));
  }
  for (const std::string lost : {"\xc1", "\xe0\x9f", "\xed\xa0", "\xf0\x8f", "\xf4\x90", "\xf5",
                                 "\xe2\x82x", "\xf0\x9f\x98x"}) {
    EXPECT_EQ(show("abc" + lost), "3 not-utf8");
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
