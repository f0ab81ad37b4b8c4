// `cordon read` as an operator runs it: the shipped program, the shipped parser under its policy,
// over the fixtures of tests/data, as root and as an ordinary user. Root only.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "services/cli/testing/cli-process.h"

namespace cordon::tests {
namespace {

namespace fs = std::filesystem;
using cli::testing::Caller;
using cli::testing::CliProcess;
using cli::testing::CliResult;
using cli::testing::Installation;
using cli::testing::ORDINARY_USER;
using cli::testing::runCli;
using cli::testing::statusOf;
using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

struct Fixture {
  std::string input;
  std::string expectation;
  std::optional<std::string> window;
};

// Each expectation with the input that it is of: NAME.json, NAME@FROM,TO.json.
std::vector<Fixture> fixturesOf(const std::string& kind) {
  const std::string folder = std::string(CORDON_TEST_DATA) + "/" + kind + "/";
  const std::string extension = kind == "junit" ? ".xml" : ".jsonl";
  std::vector<Fixture> fixtures;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    Fixture fixture;
    fixture.expectation = entry.path().string();
    std::string stem = entry.path().stem().string();
    if (const auto at = stem.find('@'); at != std::string::npos) {
      fixture.window = stem.substr(at + 1);
      stem.resize(at);
    }
    fixture.input = folder;
    fixture.input.append(stem).append(extension);
    fixtures.push_back(fixture);
  }
  std::sort(fixtures.begin(), fixtures.end(),
            [](const auto& a, const auto& b) { return a.expectation < b.expectation; });
  return fixtures;
}

std::string contentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

bool isGood(const Json& json) {
  return json.contains("green") ? json["green"].get<bool>() : json["answer"] == "complete";
}

// Whether nothing in it acts on a terminal or changes the order of what is shown: C0 but for line
// feeds, DEL, C1, bidirectional controls, line and paragraph separators.
bool isHarmless(const std::string& text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n') || byte == 0x7f) return false;
  }
  std::vector<std::string> forbidden = {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029"};
  for (const char* one :
       {"\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069"}) {
    forbidden.emplace_back(one);
  }
  for (int c1 = 0x80; c1 < 0xa0; ++c1) {
    forbidden.push_back(std::string("\xc2") + static_cast<char>(c1));
  }
  return std::none_of(forbidden.begin(), forbidden.end(),
                      [&](const std::string& one) { return text.find(one) != std::string::npos; });
}

class Read : public ::testing::Test {
 protected:
  void checkFixtures(const std::string& kind, std::size_t atLeast) {
    const auto fixtures = fixturesOf(kind);
    EXPECT_GE(fixtures.size(), atLeast);
    for (const Fixture& fixture : fixtures) {
      check(kind, fixture, Caller{});
#ifndef CORDON_SANITIZED
      // The same code behind another way to start it: once is enough where each start is slow.
      check(kind, fixture, ORDINARY_USER);
#endif
    }
  }

  void check(const std::string& kind, const Fixture& fixture, const Caller& caller) {
    SCOPED_TRACE(fixture.expectation + " as uid " + std::to_string(caller.uid));
    const std::string file = place.write("input", contentOf(fixture.input));
    std::vector<std::string> words = {"read", kind, file};
    if (fixture.window) words.push_back("--window=" + *fixture.window);
    const auto wanted = Json::parse(contentOf(fixture.expectation));

    words.emplace_back("--json");
    const CliResult json = runCli(place.cli(), words, caller);
    EXPECT_EQ(json.err, "");
    ASSERT_FALSE(json.out.empty());
    EXPECT_EQ(json.out.find('\n'), json.out.size() - 1);
    EXPECT_EQ(Json::parse(json.out), wanted);
    EXPECT_EQ(json.code, isGood(wanted) ? 0 : 1);
    EXPECT_TRUE(isHarmless(json.out));

    if (caller.uid != 0) return;
    words.pop_back();
    const CliResult text = runCli(place.cli(), words, caller);
    EXPECT_EQ(text.err, "");
    EXPECT_EQ(text.code, json.code);
    EXPECT_TRUE(isHarmless(text.out)) << text.out;
  }

  Json ask(const std::string& kind, const std::string& file, int code) {
    const CliResult result = runCli(place.cli(), {"read", kind, file, "--json"});
    EXPECT_EQ(result.code, code) << result.err;
    return Json::parse(result.out);
  }

  // Takes the parser long enough to be met while it reads.
  std::string writeLongReport() {
    std::string text = "<testsuite name='long'>";
    text.reserve(std::size_t{33} << 20);
    for (int i = 0; text.size() < std::size_t{32} << 20; ++i) {
      text += "<testcase classname='c' name='case " + std::to_string(i) + "'/>";
    }
    return place.write("long.xml", text + "</testsuite>");
  }

  Installation place{CORDON_CLI_BINARY, CORDON_PARSER_BINARY};
};

TEST_F(Read, GivesWhatTheFixturesOfVerdictsSay) {
  checkFixtures("verdicts", 100);
}

TEST_F(Read, GivesWhatTheFixturesOfCoverageSay) {
  checkFixtures("coverage", 100);
}

TEST_F(Read, GivesWhatTheFixturesOfJunitSay) {
  checkFixtures("junit", 140);
}

std::string linkOf(const std::string& path) {
  std::error_code ignored;
  return fs::read_symlink(path, ignored).string();
}

TEST_F(Read, HasTheParserSealed) {
  const std::string file = writeLongReport();
  for (const Caller& caller : {Caller{}, ORDINARY_USER}) {
    CliProcess process(place.cli(), {"read", "junit", file, "--json"}, caller);
    const auto parser = process.waitChild();
    ASSERT_TRUE(parser);
    // It goes on to read; who asked does not take the answer before we have looked.
    ASSERT_EQ(::kill(process.id(), SIGSTOP), 0);
    while (statusOf(*parser, "Seccomp") == "0") ::usleep(1000);
    EXPECT_EQ(statusOf(*parser, "Seccomp"), "2");
    EXPECT_EQ(statusOf(*parser, "NoNewPrivs"), "1");
    for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
      EXPECT_EQ(statusOf(*parser, set), "0000000000000000") << set;
    }
    const std::string folder = "/proc/" + std::to_string(*parser);
    EXPECT_EQ(linkOf(folder + "/exe"), place.path("bin/cordon-parser"));
    EXPECT_NE(linkOf(folder + "/ns/net"), linkOf("/proc/self/ns/net"));
    const std::string uids = statusOf(*parser, "Uid");
    const auto uid = std::stoul(uids);
    if (caller.uid == 0) {
      EXPECT_GE(uid, 1879048192u + 5 * 65536);
      EXPECT_LT(uid, 1879048192u + 6 * 65536);
      EXPECT_EQ(statusOf(*parser, "Groups"), " ");
      EXPECT_EQ(linkOf(folder + "/ns/user"), linkOf("/proc/self/ns/user"));
    } else {
      EXPECT_EQ(uid, caller.uid);
      EXPECT_NE(linkOf(folder + "/ns/user"), linkOf("/proc/self/ns/user"));
    }
    // Real, effective, saved and file-system.
    std::istringstream numbers(uids);
    for (int i = 0; i < 4; ++i) {
      unsigned long number = 0;
      EXPECT_TRUE(numbers >> number);
      EXPECT_EQ(number, uid);
    }
    ASSERT_EQ(::kill(process.id(), SIGCONT), 0);
    const CliResult result = process.wait();
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr(R"("green":true)"));
    EXPECT_TRUE(cli::testing::isGone(*parser));
  }
}

TEST_F(Read, LosesAParserThatIsKilledMidway) {
  const std::string file = writeLongReport();
  CliProcess process(place.cli(), {"read", "junit", file, "--json"});
  const auto parser = process.waitChild();
  ASSERT_TRUE(parser);
  ASSERT_EQ(::kill(*parser, SIGKILL), 0);
  const CliResult result = process.wait();
  EXPECT_EQ(result.code, 1);
  const auto json = Json::parse(result.out);
  EXPECT_EQ(json["status"], "refused");
  EXPECT_EQ(json["reason"], "reader-lost");
  EXPECT_EQ(json["green"], false);
}

TEST_F(Read, ListsNoMoreThanItMay) {
  const auto json = ask("junit", writeLongReport(), 0);
  ASSERT_EQ(json["status"], "ok");
  EXPECT_EQ(json["truncated"], true);
  EXPECT_EQ(json["cases"].size(), 10000u);
  EXPECT_GT(json["totals"]["cases"], 500000u);
}

TEST_F(Read, RefusesWhatIsTooLarge) {
  // Sparse: 512 MiB of NUL, and a byte more.
  const std::string file = place.write("sparse", "");
  for (const std::uintmax_t size : {std::uintmax_t{1} << 29, (std::uintmax_t{1} << 29) + 1}) {
    fs::resize_file(file, size);
    const auto junit = ask("junit", file, 1);
    EXPECT_EQ(junit["status"], "unparsable");
    EXPECT_EQ(junit["reason"], "illegal-character");
    const auto verdicts = ask("verdicts", file, 1);
    EXPECT_EQ(verdicts["status"], "unparsable");
    EXPECT_EQ(verdicts["reason"], "nul-byte");
    const auto coverage = ask("coverage", file, 1);
    EXPECT_EQ(coverage["status"], "unparsable");
    EXPECT_EQ(coverage["answer"], "contradictory");
  }
}

TEST_F(Read, ShowsNothingThatActs) {
  const std::string hostile =
      "&#x9;&#x85;&#x9b;31m\u061c\u200e\u200f\u202a\u202e\u2066\u2069\u2028\u2029\u007f\\";
  const std::string file =
      place.write("hostile.xml", "<testsuite name='" + hostile + "'><testcase classname='" +
                                     hostile + "' name='" + hostile + "'/></testsuite>");
  const auto json = ask("junit", file, 0);
  ASSERT_EQ(json["cases"].size(), 1u);
  EXPECT_EQ(json["cases"][0]["name"],
            "\t\u0085\u009b31m\u061c\u200e\u200f\u202a\u202e\u2066\u2069\u2028\u2029\u007f\\");
  EXPECT_TRUE(isHarmless(runCli(place.cli(), {"read", "junit", file, "--json"}).out));
  const CliResult text = runCli(place.cli(), {"read", "junit", file});
  EXPECT_TRUE(isHarmless(text.out)) << text.out;
  const std::string shown = R"(\u{9}\u{85}\u{9b}31m\u{61c}\u{200e}\u{200f}\u{202a}\u{202e})"
                            R"(\u{2066}\u{2069}\u{2028}\u{2029}\u{7f}\\)";
  EXPECT_THAT(text.out, HasSubstr(shown + " > " + shown + " > " + shown));
}

}  // namespace
}  // namespace cordon::tests
