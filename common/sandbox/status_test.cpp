#include "common/sandbox/status.h"

#include <string>

#include <gtest/gtest.h>

namespace cordon::sandbox {
namespace {

const std::string SEALED =
    "Name:\tcordon-parser\nUid:\t7\t7\t7\t7\nGid:\t8\t8\t8\t8\nGroups:\t \nNSpid:\t412\t2\n"
    "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
    "CapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
    "Seccomp_filters:\t12\n";

std::string without(std::string text, const std::string& line) {
  const auto begin = text.find(line);
  return text.erase(begin, text.find('\n', begin) + 1 - begin);
}

TEST(SandboxStatus, ReadsEveryLineThatIsJudged) {
  const auto status = parseStatus(SEALED);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->uids, (std::vector<std::uint64_t>{7, 7, 7, 7}));
  EXPECT_EQ(status->gids, (std::vector<std::uint64_t>{8, 8, 8, 8}));
  EXPECT_TRUE(status->groups.empty());
  EXPECT_EQ(status->pids, (std::vector<std::uint64_t>{412, 2}));
  EXPECT_EQ(status->bounding, 0x1ffffffffffU);
  EXPECT_EQ(status->noNewPrivs, 1U);
  EXPECT_EQ(status->seccomp, 2U);
  EXPECT_EQ(status->filters, 12U);
}

TEST(SandboxStatus, RefusesATextThatLacksALine) {
  for (const auto* line : {"Uid", "Gid", "Groups", "NSpid", "CapInh", "CapPrm", "CapEff", "CapBnd",
                           "CapAmb", "NoNewPrivs", "Seccomp:", "Seccomp_filters"}) {
    EXPECT_FALSE(parseStatus(without(SEALED, line))) << line;
  }
}

TEST(SandboxStatus, RefusesWhatIsNoNumber) {
  auto text = SEALED;
  text.replace(text.find("Seccomp:\t2"), 10, "Seccomp:\tx");
  EXPECT_FALSE(parseStatus(text));
  EXPECT_FALSE(parseStatus(""));
}

}  // namespace
}  // namespace cordon::sandbox
