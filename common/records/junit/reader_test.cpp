#include "common/records/junit/reader.h"

#include <string>

#include <gmock/gmock.h>

namespace cordon::records {
namespace {

JunitReport read(std::string_view text, const JunitLimits& limits = {}) {
  JunitReader reader(limits);
  reader.feed(std::as_bytes(std::span(text)));
  return reader.finish();
}

TEST(JunitReader, ReadsAPassingCase) {
  const JunitReport report =
      read(R"(<testsuite name="s" tests="1"><testcase classname="c" name="n"/></testsuite>)");
  EXPECT_EQ(report.status, Status::OK);
  EXPECT_EQ(report.totals, (JunitTotals{.cases = 1, .passed = 1}));
  EXPECT_TRUE(report.green);
  EXPECT_FALSE(report.claimsMismatch);
  EXPECT_TRUE(report.findings.empty());
  ASSERT_EQ(report.cases.size(), 1u);
  EXPECT_THAT(report.cases[0].suite, testing::ElementsAre("s"));
  EXPECT_EQ(report.cases[0].className, "c");
  EXPECT_EQ(report.cases[0].name, "n");
  EXPECT_EQ(report.cases[0].attempts, 1u);
}

struct Verdict {
  const char* name;
  std::string text;
  Status status;
  Reason reason;
};

class JunitReaderVerdict : public testing::TestWithParam<Verdict> {};

TEST_P(JunitReaderVerdict, IsAsExpected) {
  const JunitReport report = read(GetParam().text);
  EXPECT_EQ(nameOf(report.status), nameOf(GetParam().status));
  EXPECT_EQ(nameOf(report.reason), nameOf(GetParam().reason));
  EXPECT_FALSE(report.green);
}

INSTANTIATE_TEST_SUITE_P(
    Short, JunitReaderVerdict,
    testing::Values(
        Verdict{"nothing", "", Status::EMPTY, Reason::NONE},
        Verdict{"mark", "\xef\xbb\xbf", Status::EMPTY, Reason::NONE},
        Verdict{"space", "\xef\xbb\xbf \r\n\t", Status::EMPTY, Reason::NONE},
        Verdict{"no_case", "<testsuites/>", Status::EMPTY, Reason::NONE},
        Verdict{"two_roots", "<testsuite/><testsuite/>", Status::UNPARSABLE, Reason::SECOND_ROOT},
        Verdict{"junk", "<testsuite/>x", Status::UNPARSABLE, Reason::NOT_WELL_FORMED},
        Verdict{"comment_only", "<!-- -->", Status::UNPARSABLE, Reason::NO_ROOT},
        Verdict{"open_root", "<testsuite>", Status::UNPARSABLE, Reason::NOT_WELL_FORMED},
        Verdict{"reference", "<testsuite>&#27;</testsuite>", Status::UNPARSABLE,
                Reason::ILLEGAL_REFERENCE},
        Verdict{"entity", "<testsuite>&a;</testsuite>", Status::UNPARSABLE,
                Reason::ILLEGAL_REFERENCE},
        Verdict{"escape", "<testsuite>\x1b</testsuite>", Status::UNPARSABLE,
                Reason::ILLEGAL_CHARACTER},
        Verdict{"latin1_byte", "<testsuite>\xe9</testsuite>", Status::UNPARSABLE, Reason::NOT_UTF8},
        Verdict{"doctype", "<!DOCTYPE a><testsuite/>", Status::REFUSED, Reason::DOCTYPE},
        Verdict{"latin1", "<?xml version='1.0' encoding='latin-1'?><testsuite>\xe9</testsuite>",
                Status::REFUSED, Reason::ENCODING},
        Verdict{"version", "<?xml version='1.1'?><testsuite/>", Status::REFUSED,
                Reason::XML_VERSION},
        Verdict{"root", "<html/>", Status::REFUSED, Reason::FOREIGN_ROOT},
        Verdict{"utf16", std::string("\xff\xfe<\0t\0", 6), Status::REFUSED, Reason::ENCODING},
        Verdict{"utf32", std::string("\xff\xfe\0\0<\0\0\0", 8), Status::UNPARSABLE,
                Reason::NOT_UTF8}),
    [](const auto& named) { return std::string(named.param.name); });

void expectTheSameInPieces(const std::string& text, JunitLimits limits = {}) {
  const JunitReport whole = read(text, limits);
  for (std::size_t size = 4; size < 48; ++size) {
    limits.pieceBytes = size;
    const JunitReport report = read(text, limits);
    ASSERT_TRUE(report == whole) << "pieces of " << size << " of " << text << ": "
                                 << nameOf(report.reason) << " at " << report.offset << ", not "
                                 << nameOf(whole.reason) << " at " << whole.offset;
  }
}

// What is no character is found by whoever sees its first byte: that must not be expat.
TEST(JunitReaderPieces, CutNoCharacter) {
  for (const std::string before :
       {"", "&#", "&", "&a", "<", "<a", "<a ", "<a b='", "</", "<!--", "<![CDATA[", "<?p", "]]"}) {
    for (const std::string character :
         {"\xca\xca", "\xca", "\xe2\x82x", "\xe2\x82", "\xf0\x9f\x98x", "\xf0\x9f\x98\xca",
          "\xed\xa0\x80", "\xef\xbf\xbf", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
      const std::string text = "<testsuite><testcase name='a'>" + before + character;
      expectTheSameInPieces(text);
      expectTheSameInPieces(text + "'/></testcase></testsuite>");
      JunitLimits cut;
      cut.bytes = text.size() - 1;
      expectTheSameInPieces(text + "'/></testcase></testsuite>", cut);
    }
  }
}

TEST(JunitReaderPieces, SayWhereTheRootEnded) {
  for (const std::string root : {"<testsuites/>", "<testsuites></testsuites>"}) {
    for (const std::string junk :
         {"isabled\" status", "a", "abcdefghijklmnopqrstuvwxyz", "<testsuites/>", "<!-- -- -->",
          "<!DOCTYPE a>", "&amp;", "]]>", "\"a", "%a;", " \n a=b", "<?xml version='1.0'?>", "<",
          "<!", "</testsuites>", "<![CDATA[ ]]>"}) {
      const std::string text = root + junk;
      EXPECT_EQ(read(text).offset, root.size()) << text;
      expectTheSameInPieces(text);
      for (const std::string fault : {"\x01", "\xff"}) expectTheSameInPieces(text + fault);
    }
  }
}

TEST(JunitReaderPieces, EndWhereATokenIsTooLong) {
  constexpr std::size_t CAP = 64;
  JunitLimits limits;
  limits.tokenBytes = CAP;
  for (const std::string character : {"x", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    for (std::size_t length = CAP - 12; length < CAP + 8; ++length) {
      std::string token = "<testcase name='";
      while (token.size() + character.size() + 3 <= length) token += character;
      while (token.size() + 3 < length) token += '.';
      token += "'/>";
      ASSERT_EQ(token.size(), length);
      const std::string text = "<testsuite>" + token + "</testsuite>";
      EXPECT_EQ(read(text, limits).reason, length > CAP ? Reason::TOKEN_TOO_LONG : Reason::NONE)
          << length;
      expectTheSameInPieces(text, limits);
    }
  }
}

TEST(ExpatFacts, NamesTheVersionThatIsLoaded) {
  EXPECT_THAT(expatFacts().version, testing::StartsWith("expat_2."));
}

}  // namespace
}  // namespace cordon::records
