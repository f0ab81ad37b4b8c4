#include "common/channel/text.h"

#include <string>

#include <gtest/gtest.h>

#include "common/channel/encoder.h"

namespace cordon::channel {
namespace {

TEST(Text, RefusesIllFormedSequences) {
  for (const std::string text :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x80\x80", "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xe2\x82", "\xe2(\xa1", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf0\x9f\x98", "\xfe", "\xff"}) {
    EXPECT_EQ(sequenceLength(text), 0u) << testing::PrintToString(text);
    EXPECT_FALSE(countCodePoints("a" + text)) << testing::PrintToString(text);
  }
}

TEST(Text, CountsCodePoints) {
  EXPECT_EQ(countCodePoints(""), 0u);
  EXPECT_EQ(countCodePoints("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), 4u);
  EXPECT_EQ(countCodePoints("\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80"), 3u);
  EXPECT_FALSE(countCodePoints(std::string_view("a\0b", 3)));
}

TEST(Text, WireTextDropsWhatIsNoTextAndCutsAtABoundary) {
  EXPECT_EQ(toWireText(std::string_view("a\0b\xff\xc3\xa9\xed\xa0\x80", 9), 100), "ab\xc3\xa9");
  EXPECT_EQ(toWireText("ab\xc3\xa9", 3), "ab");
  EXPECT_EQ(toWireText("ab\xc3\xa9", 4), "ab\xc3\xa9");
  EXPECT_EQ(toWireText("abc", 0), "");
  // A cut must not skip a long sequence and go on with a shorter one behind it.
  EXPECT_EQ(toWireText("ab\xf0\x9f\x98\x80"
                       "cd",
                       4),
            "ab");
}

}  // namespace
}  // namespace cordon::channel
