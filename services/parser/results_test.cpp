#include "services/parser/results.h"

#include <string>

#include <capnp/message.h>
#include <capnp/schema.h>
#include <gtest/gtest.h>

namespace cordon::parser {
namespace {

// "peer-mismatch" → "peerMismatch".
std::string camelCase(std::string_view words) {
  std::string result;
  bool upper = false;
  for (const char c : words) {
    if (c == '-') {
      upper = true;
    } else {
      result += upper ? static_cast<char>(c - 'a' + 'A') : c;
      upper = false;
    }
  }
  return result;
}

// Every enumerator of ours has its namesake at the same number on the wire, and the wire has no
// other.
template <typename Ours, typename Protocol>
void expectSameEnumerators(Ours last) {
  const auto enumerants = capnp::Schema::from<Protocol>().getEnumerants();
  ASSERT_EQ(enumerants.size(), static_cast<std::size_t>(last) + 1);
  for (const auto enumerant : enumerants) {
    const std::string ours = camelCase(name(static_cast<Ours>(enumerant.getOrdinal())));
    EXPECT_EQ(ours, enumerant.getProto().getName().cStr());
  }
}

TEST(Results, EnumeratorsStandInTheSameOrderAsOnTheWire) {
  expectSameEnumerators<TamperClass, protocols::TamperClass>(TamperClass::REPLAY_DIFFERS);
  expectSameEnumerators<LossClass, protocols::LossClass>(LossClass::UNCERTIFIED);
  expectSameEnumerators<ArgumentError, protocols::ArgumentError>(ArgumentError::BAD_WINDOW);
  expectSameEnumerators<StreamError, protocols::StreamError>(StreamError::FAILED);
}

TEST(Results, BudgetLayersAndDiagLevelsToo) {
  EXPECT_EQ(static_cast<int>(channel::BudgetLayer::COMMAND),
            static_cast<int>(protocols::BudgetLayer::COMMAND));
  EXPECT_EQ(static_cast<int>(channel::BudgetLayer::CHANNEL),
            static_cast<int>(protocols::BudgetLayer::CHANNEL));
  EXPECT_EQ(static_cast<int>(channel::BudgetLayer::UNTIMED),
            static_cast<int>(protocols::BudgetLayer::UNTIMED));
  EXPECT_EQ(static_cast<int>(channel::DiagLevel::INFO),
            static_cast<int>(protocols::DiagResult::Level::INFO));
  EXPECT_EQ(static_cast<int>(channel::DiagLevel::WARN),
            static_cast<int>(protocols::DiagResult::Level::WARN));
  EXPECT_EQ(static_cast<int>(channel::DiagLevel::ERROR),
            static_cast<int>(protocols::DiagResult::Level::ERROR));
}

struct Failed {
  capnp::MallocMessageBuilder message;
  protocols::Failure::Builder failure = message.initRoot<protocols::Failure>();
};

std::string text(capnp::Data::Builder bytes) {
  return {bytes.asChars().begin(), bytes.size()};
}

TEST(Results, FailuresKeepAllThatTheySay) {
  channel::Sha256 frame{};
  frame.fill(0xab);
  Failed tamper;
  writeFailure({.deliveries = 3, .reason = Tamper{.type = TamperClass::WRONG_ID, .frame = frame}},
               tamper.failure);
  EXPECT_EQ(tamper.failure.getDeliveries(), 3u);
  EXPECT_EQ(tamper.failure.getTamper().getClass(), protocols::TamperClass::WRONG_ID);
  EXPECT_EQ(text(tamper.failure.getTamper().getFrame()), std::string(32, '\xab'));

  Failed mismatch;
  writeFailure({.deliveries = 0, .reason = Tamper{.type = TamperClass::PEER_MISMATCH, .frame = {}}},
               mismatch.failure);
  EXPECT_EQ(mismatch.failure.getTamper().getFrame().size(), 0u);

  Failed loss;
  writeFailure({.deliveries = 1, .reason = LossClass::STALE}, loss.failure);
  EXPECT_EQ(loss.failure.getLoss(), protocols::LossClass::STALE);

  Failed budget;
  writeFailure({.deliveries = 1,
                .reason = BudgetFailure{.layer = channel::BudgetLayer::COMMAND,
                                        .partial = std::string("a\0b", 3)}},
               budget.failure);
  EXPECT_EQ(budget.failure.getBudget().getLayer(), protocols::BudgetLayer::COMMAND);
  EXPECT_EQ(text(budget.failure.getBudget().getPartial()), std::string("a\0b", 3));

  Failed guest;
  writeFailure({.deliveries = 1, .reason = GuestError{.errnoName = "ENOENT", .message = "\x1b[2J"}},
               guest.failure);
  EXPECT_EQ(std::string(guest.failure.getGuest().getErrno().cStr()), "ENOENT");
  EXPECT_EQ(text(guest.failure.getGuest().getMessage()), "\x1b[2J");

  Failed limit;
  writeFailure({.deliveries = 1, .reason = FileLimit{.written = 4096}}, limit.failure);
  EXPECT_EQ(limit.failure.getFileLimit(), 4096u);

  channel::Id pinned;
  pinned.bytes.fill(1);
  channel::Id found;
  found.bytes.fill(2);
  Failed session;
  writeFailure({.deliveries = 2, .reason = SessionChange{.pinned = pinned, .found = found}},
               session.failure);
  EXPECT_EQ(text(session.failure.getSessionChanged().getPinned()), std::string(16, 1));
  EXPECT_EQ(text(session.failure.getSessionChanged().getFound()), std::string(16, 2));

  Failed argument;
  writeFailure({.deliveries = 0, .reason = ArgumentError::BAD_MODE}, argument.failure);
  EXPECT_EQ(argument.failure.getArgument(), protocols::ArgumentError::BAD_MODE);

  Failed stream;
  writeFailure({.deliveries = 1, .reason = StreamError::SOURCE_CHANGED}, stream.failure);
  EXPECT_EQ(stream.failure.getStream(), protocols::StreamError::SOURCE_CHANGED);
}

TEST(Results, APollTellsWhatItFound) {
  const auto write = [](const Polled& polled) {
    auto message = std::make_unique<capnp::MallocMessageBuilder>();
    writeResult(Outcome<Polled>(polled), message->initRoot<protocols::PollResult>());
    return message;
  };
  const auto running = write(Running{.elapsedMs = 77});
  EXPECT_EQ(running->getRoot<protocols::PollResult>().getRunning(), 77u);
  const auto exec = write(Finished{.rc = -9, .stdoutSize = 5, .stderrTruncated = true});
  ASSERT_TRUE(exec->getRoot<protocols::PollResult>().isExec());
  EXPECT_EQ(exec->getRoot<protocols::PollResult>().getExec().getRc(), -9);
  EXPECT_EQ(exec->getRoot<protocols::PollResult>().getExec().getStdoutSize(), 5u);
  EXPECT_TRUE(exec->getRoot<protocols::PollResult>().getExec().getStderrTruncated());
  const auto file = write(StoredFile{.size = 9});
  EXPECT_EQ(file->getRoot<protocols::PollResult>().getFile(), 9u);
  const auto ok = write(StoredOk{});
  EXPECT_TRUE(ok->getRoot<protocols::PollResult>().isOk());
}

}  // namespace
}  // namespace cordon::parser
