#include "services/guest/options.h"

#include <vector>

#include <gtest/gtest.h>

namespace cordon::guest {
namespace {

std::variant<Options, std::string> parsed(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  return parseOptions(arguments);
}

TEST(OptionsTest, DefaultsToVsockPort5000) {
  auto options = std::get<Options>(parsed({}));
  EXPECT_EQ(std::get<VsockAddress>(options.listen).port, 5000U);
  EXPECT_EQ(options.idleTimeoutMs, 60'000);
  EXPECT_FALSE(options.version);
}

TEST(OptionsTest, TakesValuesBehindEqualsOrNext) {
  EXPECT_EQ(std::get<VsockAddress>(std::get<Options>(parsed({"--port=7"})).listen).port, 7U);
  EXPECT_EQ(std::get<VsockAddress>(std::get<Options>(parsed({"-port", "8"})).listen).port, 8U);
  auto options = std::get<Options>(parsed({"--listen", "unix:/a=b", "--idle-timeout-ms=5"}));
  EXPECT_EQ(std::get<UnixAddress>(options.listen).path, "/a=b");
  EXPECT_EQ(options.idleTimeoutMs, 5);
  EXPECT_TRUE(std::get<Options>(parsed({"-version"})).version);
}

TEST(OptionsTest, RefusesEverythingElse) {
  const std::vector<std::vector<std::string>> wrong{{"--port"},
                                                    {"--port", "0"},
                                                    {"--port", "4294967295"},
                                                    {"--port", "5x"},
                                                    {"--port", ""},
                                                    {"--listen", "unix:"},
                                                    {"--listen", "tcp:1"},
                                                    {"--idle-timeout-ms", "0"},
                                                    {"--idle-timeout-ms", "-5"},
                                                    {"--verbose"},
                                                    {"serve"},
                                                    {""},
                                                    {"--version=1"},
                                                    {"---port=1"}};
  for (const auto& words : wrong) {
    EXPECT_TRUE(std::holds_alternative<std::string>(parsed(words))) << words[0];
  }
}

}  // namespace
}  // namespace cordon::guest
