// Who answers for a guest is told by the uid of its socket, before a byte is sent to it.
#include <optional>
#include <string>
#include <unistd.h>

#include <gmock/gmock.h>

#include "tests/vm/booted-range.h"

namespace cordon::vm {
namespace {

using testing::HasSubstr;

TEST(PeerTest, ASocketOfAnotherUidIsTamperAndIsNeverDialledAgain) {
  if (geteuid() != 0) GTEST_SKIP() << "SKIPPED(host-lacks:root): guests need root";
  BootedRange range({.guests = 2, .memoryMib = 128, .waitReady = false});
  // The other guest's uid: right range, right parser, wrong guest.
  auto wrong = range.client().openChannel(range.cid(0), range.uid(1));
  EXPECT_EQ(range.client().waitReady(wrong, 0), "tamper(peerMismatch)");
  // From then on not even the right uid helps: who holds the socket is in doubt.
  auto late = range.channel(0);
  EXPECT_EQ(range.client().waitReady(late, 0), "tamper(peerMismatch)");
  // The control: the other guest's socket has the uid that it should have. It still boots, which is
  // no tamper.
  auto right = range.channel(1);
  std::optional<std::string> answer = range.client().waitReady(right, 0);
  EXPECT_TRUE(!answer || answer->starts_with("loss(") || answer->starts_with("budget(")) << *answer;
  range.tearDown();
  EXPECT_THAT(range.parserLauncher().log(), HasSubstr("peer-mismatch"));
}

}  // namespace
}  // namespace cordon::vm
