#include "deploy/guest-exec/options.h"

#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

namespace cordon::deploy {
namespace {

using Arguments = std::vector<std::string>;

const Arguments NEEDED = {"--parser", "uds:/run/p", "--cid", "10000", "--uid", "1879058192"};

Arguments with(const std::vector<std::string>& more) {
  Arguments all = NEEDED;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string errorOf(const Arguments& arguments) {
  auto parsed = parseOptions(arguments);
  const auto* error = std::get_if<UsageError>(&parsed);
  return error != nullptr ? error->text : "accepted";
}

TEST(GuestExecOptions, TakesAll) {
  auto parsed = parseOptions(
      with({"--user", "root", "--timeout", "5", "--wait", "0", "--", "echo", "--cid", "--"}));
  const auto& options = std::get<ExecOptions>(parsed);
  EXPECT_EQ(options.parserPath, "/run/p");
  EXPECT_EQ(options.cid, 10000u);
  EXPECT_EQ(options.uid, 1879058192u);
  EXPECT_EQ(options.user, "root");
  EXPECT_EQ(options.timeoutSeconds, 5u);
  EXPECT_EQ(options.waitSeconds, 0u);
  EXPECT_EQ(options.argv, (Arguments{"echo", "--cid", "--"}));
}

TEST(GuestExecOptions, SaysWhatIsWrong) {
  EXPECT_EQ(errorOf({}), "--parser: is required");
  EXPECT_EQ(errorOf(NEEDED), "a command is required behind --");
  EXPECT_EQ(errorOf(with({"--"})), "a command is required behind --");
  EXPECT_EQ(errorOf(with({"uname", "-a"})), "uname: no such option; the command goes behind --");
  EXPECT_EQ(errorOf(with({"--cid", "5", "--", "x"})), "--cid: given twice");
  EXPECT_EQ(errorOf({"--parser"}), "--parser: needs a value");
  EXPECT_EQ(errorOf({"--parser", "/run/p"}), "--parser: '/run/p' is not a value for it");
  EXPECT_EQ(errorOf({"--cid", "2"}), "--cid: '2' is not a value for it");
  EXPECT_EQ(errorOf({"--timeout", "14401"}), "--timeout: '14401' is not a value for it");
}

}  // namespace
}  // namespace cordon::deploy
