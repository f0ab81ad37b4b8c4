#include "services/cli/read/read-command.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace cordon::cli {
namespace {

enum class Parsed { RUNS, USAGE, HELP };

Parsed parse(std::vector<std::string> words) {
  CLI::App app("test", "cordon");
  app.require_subcommand(1);
  Run run;
  declareRead(app, run);
  // CLI11 takes them from the end.
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return Parsed::HELP;
  } catch (const CLI::ParseError&) {
    return Parsed::USAGE;
  }
  return run ? Parsed::RUNS : Parsed::USAGE;
}

TEST(ReadCommand, TakesWhatIsMeant) {
  EXPECT_EQ(parse({"read", "junit", "f"}), Parsed::RUNS);
  EXPECT_EQ(parse({"read", "verdicts", "--json", "f"}), Parsed::RUNS);
  EXPECT_EQ(parse({"read", "coverage", "f", "--json", "--window", "-5,10"}), Parsed::RUNS);
  EXPECT_EQ(parse({"read", "coverage", "--window=0,1", "f"}), Parsed::RUNS);
  EXPECT_EQ(parse({"read", "junit", "--help"}), Parsed::HELP);
}

TEST(ReadCommand, TakesFilesWithAwkwardNames) {
  for (const char* file : {"read", "verdicts", "junit", "a,b", "./-", "[x]", "a b", "\x1b[1m"}) {
    EXPECT_EQ(parse({"read", "junit", file}), Parsed::RUNS) << file;
  }
  EXPECT_EQ(parse({"read", "junit", "--", "--json"}), Parsed::RUNS);
}

TEST(ReadCommand, RefusesTheRest) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"read"},
      {"read", "xml", "f"},
      {"read", "junit"},
      {"read", "junit", "-"},
      {"read", "junit", ""},
      {"read", "junit", "a", "b"},
      {"read", "junit", "f", "--frob"},
      {"read", "junit", "f", "--window", "1,2"},
      {"read", "verdicts", "f", "--window", "1,2"},
      {"read", "coverage", "--json"},
      {"read", "coverage", "f", "--window"},
      {"read", "coverage", "f", "--window", "2,1"},
      {"read", "coverage", "f", "--window", "1,1"},
      {"read", "coverage", "f", "--window", "1,2", "--window", "3,4"},
  };
  for (const auto& words : wrong) EXPECT_EQ(parse(words), Parsed::USAGE);
}

TEST(ParseWindow, TakesIntegers) {
  EXPECT_EQ(parseWindow("0,1"), (records::Window{0, 1}));
  EXPECT_EQ(parseWindow("-9007199254740991,9007199254740991"),
            (records::Window{-9007199254740991, 9007199254740991}));
}

TEST(ParseWindow, RefusesTheRest) {
  for (const char* text : {"",
                           ",",
                           "1",
                           "1,",
                           ",2",
                           "1,2,",
                           "1,2,3",
                           "1;2",
                           " 1,2",
                           "1,2 ",
                           "1, 2",
                           "+1,2",
                           "1.0,2",
                           "1e3,2000",
                           "0x1,2",
                           "a,b",
                           "2,1",
                           "1,1",
                           "0,9007199254740992",
                           "-9007199254740992,0",
                           "0,99999999999999999999",
                           "1,2\n"}) {
    EXPECT_EQ(parseWindow(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace cordon::cli
