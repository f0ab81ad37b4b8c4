// Strict JSON against a table of one member of each kind. More cases, each through a whole file:
// tests/data/verdicts.
#include "common/records/lines/line.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "common/records/lines/limits.h"

namespace cordon::records {
namespace {

struct Thing {
  std::string text;
  std::int64_t number = 0;
  bool flag = false;
  std::array<std::int64_t, 2> pair{};
  std::optional<std::string> inner;
};

constexpr Field INNER[] = {
    {.name = "x", .controls = true, .text = asText<Thing>([](Thing& to, std::string& value) {
                                      to.inner = value;
                                      return value != "never";
                                    })},
};
constexpr Field TABLE[] = {
    {.name = "t",
     .required = false,
     .maxBytes = 8,
     .text = asText<Thing>([](Thing& to, std::string& value) {
       to.text = value;
       return true;
     })},
    {.name = "n", .integer = asInteger<Thing>([](Thing& to, std::int64_t value) {
                    to.number = value;
                    return value != 13;
                  })},
    {.name = "f", .required = false, .flag = asFlag<Thing>([](Thing& to, bool value) {
                                       to.flag = value;
                                       return true;
                                     })},
    {.name = "l",
     .required = false,
     .elements = 2,
     .element = asElement<Thing>([](Thing& to, std::size_t index, std::int64_t value) {
       to.pair.at(index) = value;
       return value != 13;
     })},
    {.name = "o", .required = false, .members = INNER, .open = asObject<Thing>([](Thing& to) {
                                                         to.inner.emplace();
                                                         return true;
                                                       })},
};

Reason read(std::string_view line, bool isCut = false) {
  Thing thing;
  return readLine(line, isCut, TABLE, &thing);
}

TEST(Line, FillsWhatItsTableNames) {
  Thing thing;
  ASSERT_EQ(
      readLine(R"({"o":{"x":"\u0001"},"l":[-3,4],"f":true,"n":-9007199254740991,"t":"8 bytes!"})",
               false, TABLE, &thing),
      Reason::NONE);
  EXPECT_EQ(thing.text, "8 bytes!");
  EXPECT_EQ(thing.number, -MAX_LINE_INTEGER);
  EXPECT_TRUE(thing.flag);
  EXPECT_EQ(thing.pair, (std::array<std::int64_t, 2>{-3, 4}));
  EXPECT_EQ(thing.inner, "\x01");
}

struct Case {
  std::string_view line;
  Reason reason;
};

TEST(Line, ItsFirstViolationDecides) {
  using namespace std::string_view_literals;
  const auto cases = std::to_array<Case>({
      {R"({"n":1})", Reason::NONE},
      {" \t{ \"n\"\t: 1 } \t", Reason::NONE},
      {R"({"n":-0})", Reason::NONE},
      {"", Reason::NOT_JSON},
      {"   ", Reason::NOT_JSON},
      {R"({"n":1)", Reason::NOT_JSON},
      {R"({"n":1}})", Reason::NOT_JSON},
      {R"({"n":1} x)", Reason::NOT_JSON},
      {R"({n:1})", Reason::NOT_JSON},
      {R"({"n":0x1})", Reason::NOT_JSON},
      {R"({"n":1,"t":"\x41"})", Reason::NOT_JSON},
      {R"({"n":1,"t":"\ud83d"})", Reason::NOT_JSON},
      {"{\"n\":1,\"t\":\"\x1f\"}", Reason::NOT_JSON},
      {"{\"n\":1,\x0b\"t\":\"\"}", Reason::NOT_JSON},
      {"{\"n\":1,\x7f\"t\":\"\"}", Reason::NOT_JSON},
      {"{\"n\":1}\xc2\x80", Reason::NOT_JSON},
      {"{\"n\":1}\xef\xbb\xbf", Reason::NOT_JSON},
      {"\xef\xbb\xbf{\"n\":1}", Reason::BYTE_ORDER_MARK},
      {"\xef\xbb\xbf", Reason::BYTE_ORDER_MARK},
      {"\xef\xbb", Reason::NOT_UTF8},
      {"{\"n\":1,\"t\":\"\xef\xbb\xbf\"}", Reason::NONE},
      {"{\"n\":1}\0"sv, Reason::NUL_BYTE},
      {"\0{\"n\":1}"sv, Reason::NUL_BYTE},
      {"{\"n\":1,\"t\":\"\0\"}"sv, Reason::NUL_BYTE},
      {"{\"n\":x\0}"sv, Reason::NOT_JSON},
      {R"({"n":1,"\u0000":1})", Reason::NUL_BYTE},
      {R"({"n":1,"o":{"x":"\u0000"}})", Reason::NUL_BYTE},
      {"{\"n\":1}\r", Reason::CARRIAGE_RETURN},
      {"\r", Reason::CARRIAGE_RETURN},
      {"{\"n\":1,\"t\":\"\r\"}", Reason::CARRIAGE_RETURN},
      {"{\"n\":1,\"t\":\"\xf5\"}", Reason::NOT_UTF8},
      {"{\"n\":13,\"t\":\"\xf5\"}", Reason::WRONG_VALUE},
      {"{\"n\":1,\"t\":\"\x7f\"}", Reason::CONTROL_CHARACTER},
      {"{\"n\":1,\"o\":{\"x\":\"\x7f\"}}", Reason::CONTROL_CHARACTER},
      {"{\"n\":1,\"o\":{\"x\":\"\xc2\x85\"}}", Reason::CONTROL_CHARACTER},
      {"{\"n\":1,\"o\":{\"x\":\"\xc2\x9f\"}}", Reason::CONTROL_CHARACTER},
      {"{\"n\":1,\"o\":{\"x\":\"\\\"\x7f\"}}", Reason::CONTROL_CHARACTER},
      {"{\"n\":1,\"o\":{\"x\":\"\\\\\"}}\x7f", Reason::NOT_JSON},
      {R"({"n":1,"o":{"x":"\u007f\u0085"}})", Reason::NONE},
      {R"({"n":1,"t":"\u009f"})", Reason::CONTROL_CHARACTER},
      {R"({"n":1,"t":"\u00a0"})", Reason::NONE},
      {R"({"n":1,"t":"\u0085"})", Reason::CONTROL_CHARACTER},
      {"{\"n\":1,\"t\":\"\\\"\x7f\"}", Reason::CONTROL_CHARACTER},
      {"{\"n\":1,\"t\":\"\\\\\"\x7f}", Reason::NOT_JSON},
      {"{\"n\":1,\"t\":\"\xc2\xa0\"}", Reason::NONE},
      {R"({"n":1.0})", Reason::NOT_INTEGER},
      {R"({"n":1E0})", Reason::NOT_INTEGER},
      {R"({"n":1e-400})", Reason::NOT_INTEGER},
      {R"({"n":-1e999})", Reason::NOT_INTEGER},
      {R"({"n":9007199254740992})", Reason::INTEGER_RANGE},
      {R"({"n":-9007199254740992})", Reason::INTEGER_RANGE},
      {R"({"n":18446744073709551615})", Reason::INTEGER_RANGE},
      {R"({"n":18446744073709551616})", Reason::INTEGER_RANGE},
      {R"({"n":-9223372036854775809})", Reason::INTEGER_RANGE},
      {R"({"t":9007199254740992})", Reason::INTEGER_RANGE},
      {R"({"n":1,"n":1})", Reason::DUPLICATE_KEY},
      {R"({"n":1,"\u006e":1})", Reason::DUPLICATE_KEY},
      {R"({"n":1,"o":{"x":"","x":""}})", Reason::DUPLICATE_KEY},
      {R"({"n":1,"z":1,"z":1})", Reason::UNKNOWN_KEY},
      {R"({"n":1,"z":1)", Reason::UNKNOWN_KEY},
      {R"({"n":1,"":1})", Reason::UNKNOWN_KEY},
      {R"({"n":1,"N":1})", Reason::UNKNOWN_KEY},
      {R"({"n":1,"o":{"n":1}})", Reason::UNKNOWN_KEY},
      {R"({})", Reason::MISSING_KEY},
      {R"({"t":""})", Reason::MISSING_KEY},
      {R"({"o":{}})", Reason::MISSING_KEY},
      {R"({"n":1,"o":{}})", Reason::MISSING_KEY},
      {R"({}})", Reason::MISSING_KEY},
      {R"([])", Reason::WRONG_TYPE},
      {R"("n")", Reason::WRONG_TYPE},
      {R"(1)", Reason::WRONG_TYPE},
      {R"(1.5)", Reason::NOT_INTEGER},
      {R"(true)", Reason::WRONG_TYPE},
      {R"(null)", Reason::WRONG_TYPE},
      {R"({"n":null})", Reason::WRONG_TYPE},
      {R"({"n":"1"})", Reason::WRONG_TYPE},
      {R"({"n":true})", Reason::WRONG_TYPE},
      {R"({"n":[1]})", Reason::WRONG_TYPE},
      {R"({"n":{}})", Reason::WRONG_TYPE},
      {R"({"n":1,"t":1})", Reason::WRONG_TYPE},
      {R"({"n":1,"f":0})", Reason::WRONG_TYPE},
      {R"({"n":1,"f":"true"})", Reason::WRONG_TYPE},
      {R"({"n":1,"l":{}})", Reason::WRONG_TYPE},
      {R"({"n":1,"l":[[1,2]]})", Reason::WRONG_TYPE},
      {R"({"n":1,"l":[{}]})", Reason::WRONG_TYPE},
      {R"({"n":1,"l":["1",2]})", Reason::WRONG_TYPE},
      {R"({"n":1,"l":[true,2]})", Reason::WRONG_TYPE},
      {R"({"n":1,"l":[null,2]})", Reason::WRONG_TYPE},
      {R"({"n":1,"o":[]})", Reason::WRONG_TYPE},
      {R"({"n":1,"o":"x"})", Reason::WRONG_TYPE},
      {R"({"n":13})", Reason::WRONG_VALUE},
      {R"({"n":13,})", Reason::WRONG_VALUE},
      {R"({"n":1,"l":[]})", Reason::WRONG_VALUE},
      {R"({"n":1,"l":[1]})", Reason::WRONG_VALUE},
      {R"({"n":1,"l":[1,2,3]})", Reason::WRONG_VALUE},
      {R"({"n":1,"l":[1,13]})", Reason::WRONG_VALUE},
      {R"({"n":1,"o":{"x":"never"}})", Reason::WRONG_VALUE},
      {R"({"n":1,"t":"9 bytes!!"})", Reason::TEXT_TOO_LONG},
      {R"({"n":1,"t":"1234567\u00e9"})", Reason::TEXT_TOO_LONG},
      {R"({"n":1,"t":"12345678\u001b"})", Reason::CONTROL_CHARACTER},
  });
  for (const Case& one : cases) {
    EXPECT_EQ(nameOf(read(one.line)), nameOf(one.reason)) << one.line;
  }
}

std::string nested(char open, char close, int depth) {
  return std::string(static_cast<std::size_t>(depth), open) +
         std::string(static_cast<std::size_t>(depth), close);
}

TEST(Line, DepthDecidesWhateverCameBefore) {
  EXPECT_EQ(read(nested('[', ']', 16)), Reason::WRONG_TYPE);
  EXPECT_EQ(read(nested('[', ']', 17)), Reason::TOO_DEEP);
  EXPECT_EQ(read(R"({"n":1,"z":)" + nested('[', ']', 15) + "}"), Reason::UNKNOWN_KEY);
  EXPECT_EQ(read(R"({"n":1,"z":)" + nested('[', ']', 16) + "}"), Reason::TOO_DEEP);
  EXPECT_EQ(read(R"({"n":13,"l":)" + nested('[', ']', 16) + "}"), Reason::TOO_DEEP);
  std::string objects;
  for (int i = 0; i < 17; ++i) objects += R"({"n":)";
  EXPECT_EQ(read(objects), Reason::TOO_DEEP);
  // Many in a row are not deep.
  EXPECT_EQ(
      read("[" + std::string(1000, ' ') + "[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[]]"),
      Reason::WRONG_TYPE);
  // What broke the grammar before is the first.
  EXPECT_EQ(read(R"({"n":x)" + nested('[', ']', 17)), Reason::NOT_JSON);
  EXPECT_EQ(read(R"({"n":1,"n":)" + nested('[', ']', 17)), Reason::DUPLICATE_KEY);
}

TEST(Line, ACutOneIsTooLongUnlessItWasBadBefore) {
  EXPECT_EQ(read(R"({"n":1})", true), Reason::LINE_TOO_LONG);
  EXPECT_EQ(read(R"({"n":1)", true), Reason::LINE_TOO_LONG);
  EXPECT_EQ(read(R"({"n":1,"t":"ab)", true), Reason::LINE_TOO_LONG);
  EXPECT_EQ(read(R"({"n":tru)", true), Reason::LINE_TOO_LONG);
  EXPECT_EQ(read(R"({"n":-)", true), Reason::LINE_TOO_LONG);
  EXPECT_EQ(read(R"({"n":1,"t":"\u00)", true), Reason::LINE_TOO_LONG);
  EXPECT_EQ(read("", true), Reason::LINE_TOO_LONG);
  EXPECT_EQ(read(R"({"n":x)", true), Reason::NOT_JSON);
  EXPECT_EQ(read(R"({"n":1}x)", true), Reason::NOT_JSON);
  EXPECT_EQ(read(R"({"n":13)", true), Reason::WRONG_VALUE);
  EXPECT_EQ(read("{\"n\":1\r", true), Reason::CARRIAGE_RETURN);
}

TEST(Line, EveryReasonHasItsStatus) {
  for (const Reason reason : {Reason::NOT_JSON, Reason::BYTE_ORDER_MARK, Reason::NUL_BYTE,
                              Reason::CARRIAGE_RETURN, Reason::NOT_UTF8, Reason::DUPLICATE_KEY,
                              Reason::NOT_INTEGER, Reason::INTEGER_RANGE, Reason::TOO_DEEP}) {
    EXPECT_EQ(statusOf(reason), Status::UNPARSABLE) << nameOf(reason);
  }
  for (const Reason reason :
       {Reason::UNKNOWN_KEY, Reason::MISSING_KEY, Reason::WRONG_TYPE, Reason::WRONG_VALUE,
        Reason::CONTROL_CHARACTER, Reason::LINE_TOO_LONG, Reason::TOO_MANY_LINES,
        Reason::TEXT_TOO_LONG, Reason::TOO_MANY_SOURCES}) {
    EXPECT_EQ(statusOf(reason), Status::REFUSED) << nameOf(reason);
  }
  EXPECT_EQ(statusOf(Reason::NONE), Status::OK);
}

}  // namespace
}  // namespace cordon::records
