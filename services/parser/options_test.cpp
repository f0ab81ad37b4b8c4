#include "services/parser/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cordon::parser {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

const Words WHOLE{"--role",       "channel",       "--listen",
                  "uds:/run/p/s", "--sockets-dir", "/run/cordon/ranges/0123abcd"};

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string errorOf(const Words& words) {
  const auto options = parseOptions(words);
  const auto* error = std::get_if<UsageError>(&options);
  return error == nullptr ? "no error" : error->text;
}

TEST(Options, TakeAll) {
  const auto options =
      parseOptions(with(WHOLE, {"--allow-uid", "0", "--allow-uid", "1000", "--allow-root-peer"}));
  ASSERT_TRUE(std::holds_alternative<ServeOptions>(options));
  const auto& serve = std::get<ServeOptions>(options);
  EXPECT_EQ(std::get<ListenAtPath>(serve.listening).path, "/run/p/s");
  EXPECT_EQ(serve.socketsDirectory, "/run/cordon/ranges/0123abcd");
  EXPECT_THAT(serve.allowedUids, ElementsAre(0, 1000));
  EXPECT_TRUE(serve.allowRootPeer);
}

TEST(Options, AreStrictByDefault) {
  const auto options = parseOptions(WHOLE);
  const auto& serve = std::get<ServeOptions>(options);
  EXPECT_TRUE(serve.allowedUids.empty());
  EXPECT_FALSE(serve.allowRootPeer);
}

TEST(Options, KnowThreeWaysToServe) {
  const Words rest{"--role", "channel", "--sockets-dir", "/r"};
  const auto listener = parseOptions(with(rest, {"--listen", "fd:3"}));
  EXPECT_EQ(std::get<ListenOnFd>(std::get<ServeOptions>(listener).listening).fd, 3);
  const auto connection = parseOptions(with(rest, {"--rpc-fd", "4"}));
  EXPECT_EQ(std::get<ServeFd>(std::get<ServeOptions>(connection).listening).fd, 4);
  EXPECT_THAT(errorOf(rest), HasSubstr("--listen or --rpc-fd"));
  EXPECT_THAT(errorOf(with(WHOLE, {"--rpc-fd", "4"})), HasSubstr("once"));
}

TEST(Options, RefuseWhatIsNoSocket) {
  for (const std::string value : {"", "/run/p/s", "uds:", "uds:s", "uds:/", "uds:/run/",
                                  "fd:", "fd:2", "fd:-1", "fd:3x", "fd:99999999999"}) {
    EXPECT_THAT(errorOf({"--role", "channel", "--listen", value, "--sockets-dir", "/r"}),
                HasSubstr("--listen"))
        << value;
  }
  EXPECT_THAT(errorOf({"--listen", "uds:/" + std::string(107, 's')}), HasSubstr("--listen"));
  EXPECT_THAT(errorOf({"--rpc-fd", "0"}), HasSubstr("--rpc-fd"));
}

TEST(Options, RefuseOtherRolesAndFolders) {
  EXPECT_EQ(errorOf({"--listen", "fd:3", "--sockets-dir", "/r"}),
            "--role channel or --role read is required");
  EXPECT_EQ(errorOf({"--role", "model", "--listen", "fd:3", "--sockets-dir", "/r"}),
            "--role: neither channel nor read");
  EXPECT_THAT(errorOf({"--role", "channel", "--listen", "fd:3"}), HasSubstr("--sockets-dir"));
  for (const std::string folder : {"", "r", "/", "/r/"}) {
    EXPECT_THAT(errorOf({"--role", "channel", "--listen", "fd:3", "--sockets-dir", folder}),
                HasSubstr("--sockets-dir"))
        << folder;
  }
  EXPECT_THAT(errorOf({"--role", "channel", "--listen", "fd:3", "--sockets-dir",
                       "/" + std::string(95, 'r')}),
              HasSubstr("too long"));
}

TEST(Options, RefuseWhatTheyDoNotKnow) {
  EXPECT_EQ(errorOf(with(WHOLE, {"--verbose"})), "unknown option --verbose");
  EXPECT_EQ(errorOf(with(WHOLE, {"--no-sandbox"})), "unknown option --no-sandbox");
  EXPECT_EQ(errorOf(with(WHOLE, {"--allow-uid"})), "--allow-uid: a value is missing");
  EXPECT_EQ(errorOf(with(WHOLE, {"--allow-uid", "-1"})), "--allow-uid: not a uid");
  EXPECT_EQ(errorOf(with(WHOLE, {"--allow-uid", "4294967295"})), "--allow-uid: not a uid");
  EXPECT_EQ(errorOf(with(WHOLE, {"--role", "channel"})), "--role: given twice");
  EXPECT_EQ(errorOf(with(WHOLE, {"--print-policy"})), "--listen: not with --print-policy");
}

TEST(Options, TakeTheOneFileOfRoleRead) {
  const auto options = parseOptions({"--role", "read", "--rpc-fd", "3", "--file-fd", "4"});
  ASSERT_TRUE(std::holds_alternative<ReadOptions>(options));
  EXPECT_EQ(std::get<ReadOptions>(options).rpcFd, 3);
  EXPECT_EQ(std::get<ReadOptions>(options).fileFd, 4);
}

TEST(Options, RefuseWhatRoleReadDoesNotNeed) {
  const Words read{"--role", "read"};
  EXPECT_EQ(errorOf(read), "--rpc-fd is required");
  EXPECT_EQ(errorOf(with(read, {"--rpc-fd", "3"})), "--file-fd is required");
  EXPECT_EQ(errorOf(with(read, {"--file-fd", "3"})), "--rpc-fd is required");
  EXPECT_EQ(errorOf(with(read, {"--rpc-fd", "3", "--file-fd", "3"})),
            "--file-fd: the same descriptor as --rpc-fd");
  EXPECT_EQ(errorOf(with(read, {"--rpc-fd", "3", "--file-fd", "2"})),
            "--file-fd: not a descriptor above 2");
  EXPECT_EQ(errorOf(with(read, {"--rpc-fd", "3", "--file-fd", "4", "--file-fd", "5"})),
            "--file-fd: given twice");
  const Words whole = with(read, {"--rpc-fd", "3", "--file-fd", "4"});
  EXPECT_EQ(errorOf(with(whole, {"--sockets-dir", "/r"})), "--sockets-dir: not with --role read");
  EXPECT_EQ(errorOf(with(whole, {"--allow-uid", "1"})), "--allow-uid: not with --role read");
  EXPECT_EQ(errorOf(with(whole, {"--allow-root-peer"})), "--allow-root-peer: not with --role read");
  EXPECT_EQ(errorOf(with(read, {"--listen", "fd:3", "--file-fd", "4"})),
            "--listen: not with --role read");
  EXPECT_EQ(errorOf(with(WHOLE, {"--file-fd", "4"})), "--file-fd: not with --role channel");
}

TEST(Options, KnowThePolicyOfEachRole) {
  const auto roleOf = [](const Words& words) {
    const auto options = parseOptions(words);
    return std::get<PrintPolicy>(options).role;
  };
  EXPECT_EQ(roleOf({"--print-policy"}), Role::CHANNEL);
  EXPECT_EQ(roleOf({"--role", "channel", "--print-policy"}), Role::CHANNEL);
  EXPECT_EQ(roleOf({"--role", "read", "--print-policy"}), Role::READ);
  EXPECT_EQ(errorOf({"--role", "model", "--print-policy"}), "--role: neither channel nor read");
}

TEST(Options, KnowTheVerbsThatPrint) {
  EXPECT_TRUE(std::holds_alternative<PrintVersion>(parseOptions({"--version"})));
  EXPECT_TRUE(std::holds_alternative<PrintHelp>(parseOptions({"--help"})));
}

}  // namespace
}  // namespace cordon::parser
