#include "common/records/junit/testing/hostile.h"

#include <algorithm>
#include <cstddef>

namespace cordon::records::testing {

namespace {

constexpr std::size_t KIB = std::size_t{1} << 10;
constexpr std::size_t MIB = std::size_t{1} << 20;

constexpr std::string_view OPEN = "<testsuite name=\"s\"><testcase name=\"a\"/>";
constexpr std::string_view CLOSE = "</testsuite>";
constexpr JunitTotals ONE_PASS{.cases = 1, .passed = 1};

void repeat(const Feed& feed, std::string_view unit, std::size_t count) {
  std::string block;
  const std::size_t perBlock = std::max<std::size_t>(1, 64 * KIB / unit.size());
  while (block.size() < perBlock * unit.size()) block += unit;
  for (; count >= perBlock; count -= perBlock) feed(block);
  feed(std::string_view(block).substr(0, count * unit.size()));
}

// One case that passed, then `front`, `count` times `unit`, `back`, and the end.
std::function<void(const Feed&)> around(const std::string& front, const std::string& unit,
                                        std::size_t count, const std::string& back) {
  return [=](const Feed& feed) {
    feed(OPEN);
    feed(front);
    repeat(feed, unit, count);
    feed(back);
    feed(CLOSE);
  };
}

// Nothing long is kept beside the report that is being written.
std::function<void(const Feed&)> counted(const std::string& front, std::size_t count,
                                         const std::function<std::string(std::size_t)>& unit,
                                         const std::string& back) {
  return [=](const Feed& feed) {
    feed(front);
    std::string block;
    for (std::size_t i = 0; i < count; ++i) {
      block += unit(i);
      if (block.size() < 64 * KIB) continue;
      feed(block);
      block.clear();
    }
    feed(block);
    feed(back);
  };
}

std::function<void(const Feed&)> text(std::string all) {
  return [all = std::move(all)](const Feed& feed) { feed(all); };
}

std::string number(std::size_t i) {
  return std::to_string(i);
}

// A tag of exactly `size` bytes that says nothing: one attribute takes what is left.
std::function<void(const Feed&)> tagOf(std::size_t size, bool byteByByte = false) {
  return [=](const Feed& feed) {
    const std::string_view front = "<testcase name=\"b\" file=\"";
    const std::string_view back = "\"/>";
    feed(OPEN);
    feed(front);
    const std::size_t fill = size - front.size() - back.size();
    if (byteByByte) {
      for (std::size_t i = 0; i < fill; ++i) feed("x");
    } else {
      repeat(feed, "x", fill);
    }
    feed(back);
    feed(CLOSE);
  };
}

std::function<void(const Feed&)> utf16(std::size_t cases) {
  return [=](const Feed& feed) {
    std::string plain = "<testsuite>";
    for (std::size_t i = 0; i < cases; ++i) plain += "<testcase name=\"a\"/>";
    plain += CLOSE;
    std::string wide = "\xff\xfe";
    for (const char c : plain) (wide += c) += '\0';
    feed(wide);
  };
}

std::string bomb() {
  std::string doctype = "<!DOCTYPE t [<!ENTITY a0 \"haha\">";
  for (int i = 1; i < 30; ++i) {
    doctype += "<!ENTITY a" + std::to_string(i) + " \"";
    for (int j = 0; j < 10; ++j) doctype += "&a" + std::to_string(i - 1) + ";";
    doctype += "\">";
  }
  return doctype + "]><testsuite name=\"&a29;\"><testcase name=\"a\"/></testsuite>";
}

void addEncodingsAndEntities(std::vector<HostileReport>& all) {
  all.push_back({"entity_bomb", text(bomb()), Status::REFUSED, Reason::DOCTYPE, {}});
  all.push_back({"entity_of_a_megabyte",
                 [](const Feed& feed) {
                   feed("<!DOCTYPE t [<!ENTITY a \"");
                   repeat(feed, "x", MIB);
                   feed("\">]><testsuite>&a;</testsuite>");
                 },
                 Status::REFUSED,
                 Reason::DOCTYPE,
                 {}});
  all.push_back({"entity_of_parameters",
                 text("<!DOCTYPE t [<!ENTITY % a SYSTEM \"http://example.org/a.dtd\"> %a;]>"
                      "<testsuite/>"),
                 Status::REFUSED,
                 Reason::DOCTYPE,
                 {}});
  all.push_back(
      {"doctype_with_attribute_defaults",
       counted(
           "<!DOCTYPE t [", 100'000,
           [](std::size_t i) { return "<!ATTLIST testcase a" + number(i) + " CDATA \"x\">"; },
           "]><testsuite/>"),
       Status::REFUSED,
       Reason::DOCTYPE,
       {}});
  all.push_back({"utf_16", utf16(100'000), Status::REFUSED, Reason::ENCODING, {}});
  all.push_back({"control_byte_before_a_failure",
                 around("", "<testcase name=\"a\"/>", 500'000,
                        "<testcase name=\"b\"><failure>\x1b[31m</failure></testcase>"),
                 Status::UNPARSABLE, Reason::ILLEGAL_CHARACTER, ONE_PASS});
  all.push_back({"latin_1_byte_after_megabytes",
                 around("<!--", "x", 4 * MIB, "--><testcase name=\"\xe9\"/>"), Status::UNPARSABLE,
                 Reason::NOT_UTF8, ONE_PASS});
  all.push_back({"two_roots_after_megabytes",
                 around("", "<testcase name=\"a\"/>", 500'000, "</testsuite><testsuite>"),
                 Status::UNPARSABLE, Reason::SECOND_ROOT, ONE_PASS});
}

void addTokens(std::vector<HostileReport>& all) {
  const auto tooLong = [&](std::string name, std::function<void(const Feed&)> write,
                           JunitTotals totals = ONE_PASS) {
    all.push_back(
        {std::move(name), std::move(write), Status::REFUSED, Reason::TOKEN_TOO_LONG, totals});
  };
  tooLong("comment_of_64_mib", around("<!--", "x", 64 * MIB, "-->"));
  tooLong("instruction_of_64_mib", around("<?a ", "x", 64 * MIB, "?>"));
  tooLong("attribute_of_64_mib", around("<a b=\"", "x", 64 * MIB, "\"/>"));
  tooLong("element_name_of_64_mib", around("<", "x", 64 * MIB, "/>"));
  tooLong("attribute_name_of_64_mib", around("<a ", "x", 64 * MIB, "=\"\"/>"));
  tooLong("end_tag_of_64_mib", around("<a></a", " ", 64 * MIB, ">"));
  tooLong("reference_of_64_mib", around("&#", "0", 64 * MIB, "65;"));
  tooLong("attributes_of_64_mib", around("<a ", "b=\"\" ", 64 * MIB / 5, "/>"));
  tooLong("declaration_of_64_mib",
          [](const Feed& feed) {
            feed("<?xml version=\"1.0\"");
            repeat(feed, " ", 64 * MIB);
            feed("?><testsuite/>");
          },
          {});
  tooLong("tag_of_a_byte_more_than_8_mib", tagOf(8 * MIB + 1));
  all.push_back(
      {"tag_of_8_mib", tagOf(8 * MIB), Status::OK, Reason::NONE, {.cases = 2, .passed = 2}});
  all.push_back({"tag_of_8_mib_byte_by_byte",
                 tagOf(8 * MIB, true),
                 Status::OK,
                 Reason::NONE,
                 {.cases = 2, .passed = 2}});
  all.push_back({"element_name_of_8_mib", around("<", "x", 8 * MIB - 3, "/>"), Status::OK,
                 Reason::NONE, ONE_PASS});
  all.push_back(
      {"message_of_8_mib",
       around("<testcase name=\"b\"><skipped message=\"", "y", 8 * MIB - 22, "\"/></testcase>"),
       Status::OK,
       Reason::NONE,
       {.cases = 2, .passed = 1, .skipped = 1},
       true});
  all.push_back({"comments_of_5_mib",
                 [](const Feed& feed) {
                   feed(OPEN);
                   for (int i = 0; i < 8; ++i) {
                     feed("<!--");
                     repeat(feed, "x", 5 * MIB);
                     feed("-->");
                   }
                   feed(CLOSE);
                 },
                 Status::OK, Reason::NONE, ONE_PASS});
  all.push_back({"open_tag_at_the_end",
                 [](const Feed& feed) {
                   feed(OPEN);
                   feed("<a b=\"");
                   repeat(feed, "x", 7 * MIB);
                 },
                 Status::UNPARSABLE, Reason::NOT_WELL_FORMED, ONE_PASS});
}

void addNumbers(std::vector<HostileReport>& all) {
  all.push_back({"depth_of_a_million", around("", "<testsuite>", 1'000'000, ""), Status::REFUSED,
                 Reason::TOO_DEEP, ONE_PASS});
  all.push_back(
      {"attributes_100000",
       counted(
           std::string(OPEN) + "<a ", 100'000,
           [](std::size_t i) { return "a" + number(i) + "=\"\" "; }, "/>" + std::string(CLOSE)),
       Status::REFUSED, Reason::TOO_MANY_ATTRIBUTES, ONE_PASS});
  all.push_back(
      {"attributes_257",
       counted(
           std::string(OPEN) + "<a ", 257, [](std::size_t i) { return "a" + number(i) + "=\"\" "; },
           "/>" + std::string(CLOSE)),
       Status::REFUSED, Reason::TOO_MANY_ATTRIBUTES, ONE_PASS});
  all.push_back(
      {"attributes_256",
       counted(
           std::string(OPEN) + "<a ", 256, [](std::size_t i) { return "a" + number(i) + "=\"\" "; },
           "/>" + std::string(CLOSE)),
       Status::OK, Reason::NONE, ONE_PASS});
  all.push_back(
      {"namespaces_100000",
       counted(
           std::string(OPEN) + "<a ", 100'000,
           [](std::size_t i) { return "xmlns:a" + number(i) + "=\"u" + number(i) + "\" "; },
           "/>" + std::string(CLOSE)),
       Status::REFUSED, Reason::TOO_MANY_NAMESPACES, ONE_PASS});
  all.push_back(
      {"namespaces_64",
       counted(
           std::string(OPEN), 64,
           [](std::size_t i) { return "<a xmlns:b=\"u" + number(i) + "\"/>"; }, std::string(CLOSE)),
       Status::OK, Reason::NONE, ONE_PASS});
  all.push_back(
      {"namespaces_65",
       counted(
           std::string(OPEN), 65,
           [](std::size_t i) { return "<a xmlns:b=\"u" + number(i) + "\"/>"; }, std::string(CLOSE)),
       Status::REFUSED, Reason::TOO_MANY_NAMESPACES, ONE_PASS});
  // What a tool makes of a hundred reports of Surefire's is no attack.
  all.push_back({"namespace_declared_often",
                 counted(
                     "<testsuites>", 1000,
                     [](std::size_t i) {
                       return "<testsuite xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
                              "name=\"s\"><testcase name=\"" +
                              number(i) + "\"/></testsuite>";
                     },
                     "</testsuites>"),
                 Status::OK,
                 Reason::NONE,
                 {.cases = 1000, .passed = 1000}});
  // testsuite, testcase and name are three of them.
  all.push_back({"names_1024",
                 counted(
                     std::string(OPEN), 1021, [](std::size_t i) { return "<a" + number(i) + "/>"; },
                     std::string(CLOSE)),
                 Status::OK, Reason::NONE, ONE_PASS});
  all.push_back({"names_1025",
                 counted(
                     std::string(OPEN), 1022, [](std::size_t i) { return "<a" + number(i) + "/>"; },
                     std::string(CLOSE)),
                 Status::REFUSED, Reason::TOO_MANY_NAMES, ONE_PASS});
  all.push_back(
      {"names_of_100_kib",
       counted(
           std::string(OPEN), 1000,
           [](std::size_t i) { return "<a" + number(i) + std::string(100 * KIB, 'x') + "/>"; },
           std::string(CLOSE)),
       Status::REFUSED, Reason::OUT_OF_MEMORY, ONE_PASS});
  all.push_back({"open_names_of_a_mib",
                 counted(
                     std::string(OPEN), 60,
                     [](std::size_t i) { return "<a" + number(i) + std::string(MIB, 'x') + ">"; },
                     std::string(CLOSE)),
                 Status::REFUSED, Reason::OUT_OF_MEMORY, ONE_PASS});
  all.push_back({"elements_5000001", around("", "<a/>", 4'999'999, ""), Status::REFUSED,
                 Reason::TOO_MANY_ELEMENTS, ONE_PASS, false, true});
  all.push_back({"elements_5000000", around("", "<a/>", 4'999'998, ""), Status::OK, Reason::NONE,
                 ONE_PASS, false, true});
}

void addCases(std::vector<HostileReport>& all) {
  const auto named = [](std::size_t i) { return "<testcase name=\"" + number(i) + "\"/>"; };
  all.push_back({"cases_1000000",
                 counted("<testsuite>", 1'000'000, named, "</testsuite>"),
                 Status::OK,
                 Reason::NONE,
                 {.cases = 1'000'000, .passed = 1'000'000},
                 true,
                 true});
  all.push_back({"cases_1000001",
                 counted("<testsuite>", 1'000'001, named, "</testsuite>"),
                 Status::REFUSED,
                 Reason::TOO_MANY_CASES,
                 {.cases = 1'000'000, .passed = 1'000'000},
                 true,
                 true});
  all.push_back({"nameless_cases_1000001",
                 around("", "<testcase/>", 1'000'000, ""),
                 Status::REFUSED,
                 Reason::TOO_MANY_CASES,
                 {.cases = 1'000'000, .passed = 1'000'000},
                 true,
                 true});
  all.push_back({"cases_10000",
                 counted("<testsuite>", 10'000, named, "</testsuite>"),
                 Status::OK,
                 Reason::NONE,
                 {.cases = 10'000, .passed = 10'000}});
  all.push_back({"cases_10001",
                 counted("<testsuite>", 10'001, named, "</testsuite>"),
                 Status::OK,
                 Reason::NONE,
                 {.cases = 10'001, .passed = 10'001},
                 true});
  // Everything at once: a full table, a full list, deep paths, and then the longest tag.
  all.push_back({"cases_then_a_tag_of_8_mib",
                 [named](const Feed& feed) {
                   std::string front = "<testsuites>";
                   std::string back;
                   for (int i = 0; i < 60; ++i) {
                     front += "<testsuite name=\"" + std::string(10, 'n') + "\">";
                     back += "</testsuite>";
                   }
                   counted(front, 900'000, named, "")(feed);
                   feed("<a b=\"");
                   repeat(feed, "x", 8 * MIB - 10);
                   feed("\"/>" + back + "</testsuites>");
                 },
                 Status::REFUSED,
                 Reason::OUT_OF_MEMORY,
                 {.cases = 900'000, .passed = 900'000},
                 true,
                 true});
  all.push_back({"failures_of_64_kib",
                 counted(
                     "<testsuite>", 2000,
                     [](std::size_t i) {
                       return "<testcase name=\"" + number(i) + "\"><failure>" +
                              std::string(60 * KIB, 'f') + "</failure></testcase>";
                     },
                     "</testsuite>"),
                 Status::OK,
                 Reason::NONE,
                 {.cases = 2000, .failed = 2000},
                 true});
  all.push_back({"case_names_of_a_mib",
                 counted(
                     "<testsuite>", 100,
                     [](std::size_t i) {
                       return "<testcase name=\"" + std::string(MIB, 'n') + number(i) + "\"/>";
                     },
                     "</testsuite>"),
                 Status::OK,
                 Reason::NONE,
                 {.cases = 100, .passed = 100},
                 true});
  all.push_back({"suite_names_of_a_mib",
                 counted(
                     "<testsuites>", 62,
                     [](std::size_t) {
                       return "<testsuite name=\"" + std::string(MIB, 'n') +
                              "\"><testcase name=\"a\"/>";
                     },
                     [] {
                       std::string back;
                       for (int i = 0; i < 62; ++i) back += "</testsuite>";
                       return back + "</testsuites>";
                     }()),
                 Status::OK,
                 Reason::NONE,
                 {.cases = 62, .passed = 62},
                 true});
  all.push_back({"cases_in_cases",
                 [](const Feed& feed) {
                   counted(
                       "<testsuite>", 62,
                       [](std::size_t i) {
                         return "<testcase name=\"" + number(i) + "\">" +
                                std::string(100 * KIB, 't');
                       },
                       "")(feed);
                   for (int i = 0; i < 62; ++i) {
                     feed("<system-out>");
                     repeat(feed, "o", 70 * KIB);
                     feed("</system-out></testcase>");
                   }
                   feed("</testsuite>");
                 },
                 Status::OK,
                 Reason::NONE,
                 {.cases = 62, .passed = 62},
                 true});
  all.push_back({"one_case_repeated",
                 around("", "<testcase name=\"a\"><failure/></testcase>", 300'000, ""),
                 Status::OK,
                 Reason::NONE,
                 {.cases = 1, .failed = 1}});
}

void addText(std::vector<HostileReport>& all) {
  all.push_back(
      {"output_of_64_mib",
       around("<testcase name=\"b\"><system-out>", "out\n", 16 * MIB, "</system-out></testcase>"),
       Status::OK,
       Reason::NONE,
       {.cases = 2, .passed = 2},
       true});
  all.push_back({"cdata_of_64_mib",
                 around("<testcase name=\"b\"><system-out><![CDATA[", "]]&<!--", 64 * MIB / 7,
                        "]]></system-out></testcase>"),
                 Status::OK,
                 Reason::NONE,
                 {.cases = 2, .passed = 2},
                 true});
  all.push_back({"cdata_without_end",
                 around("<testcase name=\"b\"><system-out><![CDATA[", "x", 16 * MIB, ""),
                 Status::UNPARSABLE, Reason::NOT_WELL_FORMED, ONE_PASS, true});
  all.push_back({"references_of_64_mib",
                 around("<testcase name=\"b\"><failure>", "&lt;", 4 * MIB, "</failure></testcase>"),
                 Status::OK,
                 Reason::NONE,
                 {.cases = 2, .passed = 1, .failed = 1},
                 true});
  all.push_back({"property_of_16_mib_of_items",
                 around("<properties>", "<property name=\"a\"><item>aGVsbG8=</item></property>",
                        300'000, "</properties>"),
                 Status::OK, Reason::NONE, ONE_PASS});
  all.push_back({"white_space_of_64_mib",
                 [](const Feed& feed) {
                   repeat(feed, "\n", 32 * MIB);
                   feed(OPEN);
                   feed(CLOSE);
                   repeat(feed, " ", 32 * MIB);
                 },
                 Status::OK, Reason::NONE, ONE_PASS});
  const auto sized = [](std::size_t size) {
    return [=](const Feed& feed) {
      feed(OPEN);
      repeat(feed, " ", size - OPEN.size() - CLOSE.size());
      feed(CLOSE);
    };
  };
  all.push_back(
      {"bytes_512_mib", sized(512 * MIB), Status::OK, Reason::NONE, ONE_PASS, false, true});
  all.push_back({"bytes_512_mib_and_one", sized(512 * MIB + 1), Status::REFUSED,
                 Reason::TOO_MANY_BYTES, ONE_PASS, false, true});
}

}  // namespace

std::vector<HostileReport> hostileReports() {
  std::vector<HostileReport> all;
  addEncodingsAndEntities(all);
  addTokens(all);
  addNumbers(all);
  addCases(all);
  addText(all);
  return all;
}

}  // namespace cordon::records::testing
