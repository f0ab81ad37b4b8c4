#include "services/helper/launch/options.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "services/helper/launch/error.h"

namespace cordon::launch {
namespace {

using Arguments = std::vector<std::string>;

const Arguments GUEST = {"guest",    "--range", "0123abcd", "--cid", "10000",
                         "--kernel", "/k",      "--initrd", "/i"};
const Arguments PARSER = {"parser",      "--range", "0123abcd", "--role",        "channel",
                          "--first-cid", "10000",   "--listen", "uds:/run/c/p/s"};

Arguments with(Arguments base, const std::vector<std::string>& more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}

// The same arguments with the value of one option replaced.
Arguments replaced(Arguments base, const std::string& option, const std::string& value) {
  for (std::size_t i = 1; i + 1 < base.size(); i += 2) {
    if (base[i] == option) base[i + 1] = value;
  }
  return base;
}

std::string failureOf(const Arguments& arguments) {
  try {
    parseOptions(arguments, "/own");
  } catch (const LaunchError& error) {
    return std::string(name(error.code)) + " " + error.subject;
  }
  return "accepted";
}

TEST(Options, GuestDefaults) {
  GuestOptions options = std::get<GuestOptions>(parseOptions(GUEST, "/own"));
  EXPECT_EQ(options.range, "0123abcd");
  EXPECT_EQ(options.cid, 10000u);
  EXPECT_EQ(options.firstCid, 10000u);
  EXPECT_EQ(options.memoryMib, 256u);
  EXPECT_EQ(options.cpus, 1u);
  EXPECT_EQ(options.accel, Accel::AUTO);
  EXPECT_EQ(options.console, std::nullopt);
  EXPECT_EQ(options.runtimeDir, "/run/cordon");
  EXPECT_EQ(options.vsockBinary, "/own/cordon-vsock");
  EXPECT_EQ(options.vmmBinary, "/usr/bin/qemu-system-x86_64");
}

TEST(Options, GuestTakesAll) {
  GuestOptions options = std::get<GuestOptions>(
      parseOptions(with(GUEST, {"--first-cid", "9999", "--append", "a=1", "--append", "b",
                                "--memory", "64", "--cpus", "64", "--accel", "tcg", "--console",
                                "c", "--runtime-dir", "/run/x", "--vsock-binary", "v"}),
                   "/own"));
  EXPECT_EQ(options.firstCid, 9999u);
  EXPECT_EQ(options.append, (std::vector<std::string>{"a=1", "b"}));
  EXPECT_EQ(options.memoryMib, 64u);
  EXPECT_EQ(options.cpus, 64u);
  EXPECT_EQ(options.accel, Accel::TCG);
  EXPECT_EQ(options.console, "c");
  EXPECT_EQ(options.runtimeDir, "/run/x");
  EXPECT_EQ(options.vsockBinary, "v");
}

TEST(Options, ParserTakesAll) {
  ParserOptions options = std::get<ParserOptions>(
      parseOptions(with(PARSER, {"--allow-uid", "0", "--allow-uid", "1000"}), "/own"));
  EXPECT_EQ(options.firstCid, 10000u);
  EXPECT_EQ(options.listenPath, "/run/c/p/s");
  EXPECT_EQ(options.allowUids, (std::vector<std::uint32_t>{0, 1000}));
  EXPECT_EQ(options.parserBinary, "/own/cordon-parser");
}

TEST(Options, RefusesWhatIsNotACommandLineOfOurs) {
  EXPECT_EQ(failureOf({}), "usage verb");
  EXPECT_EQ(failureOf({"vm"}), "usage vm");
  EXPECT_EQ(failureOf(with(GUEST, {"--qemu-args", "x"})), "usage --qemu-args");
  EXPECT_EQ(failureOf(with(GUEST, {"--memory"})), "usage --memory");
  EXPECT_EQ(failureOf(with(GUEST, {"--cid", "10001"})), "usage --cid");
  EXPECT_EQ(failureOf(with(GUEST, {"--allow-uid", "0"})), "usage --allow-uid");
  EXPECT_EQ(failureOf({"guest", "--range", "0123abcd"}), "usage --cid");
  EXPECT_EQ(failureOf({"parser", "--range", "0123abcd", "--role", "channel", "--first-cid", "3"}),
            "usage --listen");
}

TEST(Options, RefusesARangeIdThatIsNotEightHexDigits) {
  for (const char* bad : {"", "0123abc", "0123abcde", "0123ABCD", "../../et", "0123abc\n"}) {
    EXPECT_EQ(failureOf(replaced(GUEST, "--range", bad)), "bad-argument --range") << bad;
    EXPECT_EQ(failureOf(replaced(PARSER, "--range", bad)), "bad-argument --range") << bad;
  }
}

TEST(Options, RefusesNumbersOutOfBoundsOrNotCanonical) {
  for (const char* bad :
       {"", "2", "65536", "-1", "+5", "05", "0x10", "10 ", " 10", "4294967299", "ten"}) {
    EXPECT_EQ(failureOf(replaced(GUEST, "--cid", bad)), "bad-argument --cid") << bad;
  }
  EXPECT_EQ(failureOf(with(GUEST, {"--memory", "63"})), "bad-argument --memory");
  EXPECT_EQ(failureOf(with(GUEST, {"--memory", "1048577"})), "bad-argument --memory");
  EXPECT_EQ(failureOf(with(GUEST, {"--cpus", "0"})), "bad-argument --cpus");
  EXPECT_EQ(failureOf(with(GUEST, {"--cpus", "65"})), "bad-argument --cpus");
  // (uid_t)-1 means "no change" to the kernel.
  EXPECT_EQ(failureOf(with(PARSER, {"--allow-uid", "4294967295"})), "bad-argument --allow-uid");
}

TEST(Options, RefusesPathsThatMeanMoreThanOnePlace) {
  for (const char* bad : {"", "run/x", "/run/../etc", "/run/x/", "/run//x", "/./x", "/x/..", "/"}) {
    EXPECT_EQ(failureOf(with(GUEST, {"--runtime-dir", bad})), "bad-argument --runtime-dir") << bad;
    EXPECT_EQ(failureOf(replaced(PARSER, "--listen", std::string("uds:") + bad)),
              "bad-argument --listen")
        << bad;
  }
  EXPECT_EQ(failureOf(replaced(PARSER, "--listen", "/run/c/p/s")), "bad-argument --listen");
  EXPECT_EQ(failureOf(replaced(GUEST, "--kernel", "a\nb")), "bad-argument --kernel");
}

TEST(Options, RefusesASocketPathThatTheKernelWouldCut) {
  // <dir>/ranges/0123abcd/10000/vsock.sock must be at most 107 bytes: 74 are left for <dir>.
  std::string longest = "/" + std::string(73, 'd');
  EXPECT_EQ(failureOf(with(GUEST, {"--runtime-dir", longest})), "accepted");
  EXPECT_EQ(failureOf(with(GUEST, {"--runtime-dir", longest + "d"})), "bad-argument --runtime-dir");
  EXPECT_EQ(failureOf(replaced(PARSER, "--listen", "uds:/" + std::string(107, 's'))),
            "bad-argument --listen");
}

TEST(Options, RefusesWordsThatWouldBeSeveral) {
  for (const char* bad : {"", "a b", "a\tb", "a\n", "\x7f", "\xc3\xa9"}) {
    EXPECT_EQ(failureOf(with(GUEST, {"--append", bad})), "bad-argument --append") << bad;
  }
  EXPECT_EQ(failureOf(with(
                GUEST, {"--append", std::string(1000, 'a'), "--append", std::string(534, 'a')})),
            "accepted");
  EXPECT_EQ(failureOf(with(
                GUEST, {"--append", std::string(1000, 'a'), "--append", std::string(535, 'a')})),
            "bad-argument --append");
}

TEST(Options, RefusesOtherWords) {
  EXPECT_EQ(failureOf(with(GUEST, {"--accel", "hvf"})), "bad-argument --accel");
  EXPECT_EQ(failureOf(replaced(PARSER, "--role", "model")), "bad-argument --role");
}

}  // namespace
}  // namespace cordon::launch
