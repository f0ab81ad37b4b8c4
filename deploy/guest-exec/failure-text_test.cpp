#include "deploy/guest-exec/failure-text.h"

#include <string>

#include <capnp/message.h>
#include <gtest/gtest.h>

namespace cordon::deploy {
namespace {

TEST(FailureText, NamesKindAndClass) {
  capnp::MallocMessageBuilder message;
  auto failure = message.initRoot<protocols::Failure>();
  failure.initTamper().setClass(protocols::TamperClass::PEER_MISMATCH);
  EXPECT_EQ(describe(failure.asReader()), "tamper(peerMismatch)");
  failure.setLoss(protocols::LossClass::UNREACHABLE);
  EXPECT_EQ(describe(failure.asReader()), "loss(unreachable)");
  failure.initBudget().setLayer(protocols::BudgetLayer::COMMAND);
  EXPECT_EQ(describe(failure.asReader()), "budget(command)");
  failure.setFileLimit(7);
  EXPECT_EQ(describe(failure.asReader()), "fileLimit(7)");
  failure.setArgument(protocols::ArgumentError::BAD_ID);
  EXPECT_EQ(describe(failure.asReader()), "argument(badId)");
  failure.setStream(protocols::StreamError::FAILED);
  EXPECT_EQ(describe(failure.asReader()), "stream(failed)");
}

TEST(FailureText, AGuestsWordsStayOneLineOfAscii) {
  capnp::MallocMessageBuilder message;
  auto failure = message.initRoot<protocols::Failure>();
  auto guest = failure.initGuest();
  guest.setErrno("ENOENT");
  std::string words = "a\nb\x1b[2J\xff";
  guest.setMessage(kj::arrayPtr(reinterpret_cast<const kj::byte*>(words.data()), words.size()));
  EXPECT_EQ(describe(failure.asReader()), "guest(ENOENT: a\\x0ab\\x1b[2J\\xff)");
}

// A newer parser, or a lost one, may send what this build has no name for.
TEST(FailureText, AnUnknownClassIsANumber) {
  capnp::MallocMessageBuilder message;
  auto failure = message.initRoot<protocols::Failure>();
  failure.setLoss(static_cast<protocols::LossClass>(4711));
  EXPECT_EQ(describe(failure.asReader()), "loss(#4711)");
}

TEST(EscapeForTerminal, LeavesNothingThatActs) {
  EXPECT_EQ(escapeForTerminal("line\n\ttext \\ \x1b]0;x\x07\r\x9b"),
            "line\n\ttext \\\\ \\x1b]0;x\\x07\\x0d\\x9b");
}

}  // namespace
}  // namespace cordon::deploy
