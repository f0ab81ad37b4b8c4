#include "common/log/visible.h"

#include <string>

#include <gtest/gtest.h>

namespace cordon::log {
namespace {

using namespace std::string_literals;

TEST(Visible, KeepsWhatIsSeen) {
  EXPECT_EQ(visible(""), "");
  EXPECT_EQ(visible("plain text, \"quoted\""), "plain text, \"quoted\"");
  EXPECT_EQ(visible("Grüße 日本 🙂"), "Grüße 日本 🙂");
}

TEST(Visible, ShowsControls) {
  EXPECT_EQ(visible("a\x1b[31mb"), "a\\u{1b}[31mb");
  EXPECT_EQ(visible("one\ntwo\r\t"), "one\\u{a}two\\u{d}\\u{9}");
  EXPECT_EQ(visible("\0\x7f"s), "\\u{0}\\u{7f}");
  EXPECT_EQ(visible("\u009b0m"), "\\u{9b}0m");
}

TEST(Visible, ShowsWhatReordersOrHides) {
  const std::pair<const char*, const char*> cases[] = {
      {"\u061c", "\\u{61c}"},  {"\u200e", "\\u{200e}"}, {"\u200f", "\\u{200f}"},
      {"\u202a", "\\u{202a}"}, {"\u202e", "\\u{202e}"}, {"\u2066", "\\u{2066}"},
      {"\u2069", "\\u{2069}"}, {"\u2028", "\\u{2028}"}, {"\u2029", "\\u{2029}"},
      {"\u200b", "\\u{200b}"}, {"\ufeff", "\\u{feff}"}, {"\U000e0041", "\\u{e0041}"},
  };
  for (const auto& [text, shown] : cases) EXPECT_EQ(visible(text), shown);
}

TEST(Visible, IsUnambiguous) {
  EXPECT_EQ(visible("\\u{1b}"), "\\\\u{1b}");
}

TEST(Visible, ShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(visible("a\xff\xfe"), "a\\xff\\xfe");
  EXPECT_EQ(visible("\xc0\x80"), "\\xc0\\x80");                    // overlong NUL
  EXPECT_EQ(visible("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // surrogate
  EXPECT_EQ(visible("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // over U+10FFFF
  EXPECT_EQ(visible("\xe2\x80"), "\\xe2\\x80");                    // cut short
}

TEST(Visible, TellsUtf8) {
  EXPECT_TRUE(isUtf8(""));
  EXPECT_TRUE(isUtf8("Grüße \0 🙂"s));
  EXPECT_TRUE(isUtf8("\xf4\x8f\xbf\xbf"));
  for (const char* ill : {"\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xbf\xbf", "\xf0\x80\x80\x80",
                          "\xf8\x88\x80\x80\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    EXPECT_FALSE(isUtf8(ill));
  }
}

}  // namespace
}  // namespace cordon::log
