#include "common/ipc/rpc-peer.h"

#include <capnp/rpc.capnp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kj/debug.h>

#include "common/ipc/testing/peers.h"

namespace cordon::ipc {
namespace {

using namespace testing;
namespace rpc = capnp::rpc;

void writeCall(capnp::MallocMessageBuilder& message, std::uint32_t question,
               std::uint32_t size = 1) {
  auto call = message.initRoot<rpc::Message>().initCall();
  call.setQuestionId(question);
  call.setInterfaceId(capnp::typeId<protocols::ByteSource>());
  call.initTarget().initPromisedAnswer().setQuestionId(0);
  call.initParams().getContent().initAs<protocols::ByteSource::ReadParams>().setSize(size);
}

void sendBootstrap(ServedStream& peers) {
  capnp::MallocMessageBuilder message;
  message.initRoot<rpc::Message>().initBootstrap().setQuestionId(0);
  peers.send(message);
}

// A call that ends only with its connection, and says when it was cancelled.
Script never(bool& cancelled) {
  return [&cancelled](ReadContext context) -> kj::Promise<void> {
    context.allowCancellation();
    return kj::Promise<void>(kj::NEVER_DONE).attach(kj::defer([&cancelled]() {
      cancelled = true;
    }));
  };
}

TEST(RpcPeer, ServesPlainClients) {
  ServedClient peers(giveZeros);
  auto source = peers.source();
  EXPECT_EQ(peers.read(source, 100'000).wait(peers.io.waitScope), 100'000u);
  EXPECT_EQ(peers.read(source, 0).wait(peers.io.waitScope), 0u);
}

TEST(RpcPeer, TellsThatThePeerWent) {
  ServedStream peers(giveZeros);
  peers.raw = nullptr;
  EXPECT_EQ(peers.waitEnd(), ErrorCode::DISCONNECTED);
}

TEST(RpcPeer, AnOversizeMessageEndsTheConnectionAtItsFirstWord) {
  ServedStream peers(giveZeros);
  // 1 MiB of body alone: the header puts it over the limit. Not one byte of the body is sent.
  const std::uint32_t word[] = {0, (1u << 20) / 8};
  peers.send(word, sizeof(word));
  EXPECT_EQ(peers.waitEnd(), ErrorCode::MESSAGE_TOO_LARGE);
}

TEST(RpcPeer, TooManySegmentsEndTheConnectionAtTheFirstWord) {
  ServedStream peers(giveZeros);
  const std::uint32_t word[] = {512, 1};
  peers.send(word, sizeof(word));
  EXPECT_EQ(peers.waitEnd(), ErrorCode::MESSAGE_TOO_LARGE);
}

TEST(RpcPeer, ManySmallSegmentsMakeAMessage) {
  ServedStream peers(giveZeros);
  capnp::MallocMessageBuilder message(1, capnp::AllocationStrategy::FIXED_SIZE);
  sendBootstrap(peers);
  writeCall(message, 1, 3);
  ASSERT_GT(message.getSegmentsForOutput().size(), 3u);
  peers.send(message);
  peers.receive();
  auto answer = peers.receive();
  const auto result = answer->getRoot<rpc::Message>().getReturn();
  ASSERT_TRUE(result.isResults());
  EXPECT_EQ(result.getResults()
                .getContent()
                .getAs<protocols::ByteSource::ReadResults>()
                .getBytes()
                .size(),
            3u);
}

TEST(RpcPeer, RefusesToSendWhatThePeerWouldRefuse) {
  ServedClient peers([](ReadContext context) -> kj::Promise<void> {
    context.getResults().initBytes(1u << 20);
    return kj::READY_NOW;
  });
  auto source = peers.source();
  EXPECT_EQ(codeOf(failureOf(peers.read(source, 1), peers.io.waitScope)), ErrorCode::INTERNAL);
}

// `depth` messages in each other where Cap'n Proto never looks, and where a reader must follow
// them.
void nest(rpc::Message::Builder at, int depth) {
  for (int i = 1; i < depth; ++i) at = at.initUnimplemented();
  at.initBootstrap();
}

int depthOf(rpc::Message::Reader at) {
  int depth = 1;
  for (; at.isUnimplemented(); ++depth) at = at.getUnimplemented();
  return depth;
}

TEST(RpcPeer, ANestingBombIsCutWhereItIsRead) {
  kj::Maybe<kj::Exception> cut;
  int depth = 0;
  ServedStream peers([&](ReadContext context) -> kj::Promise<void> {
    cut = kj::runCatchingExceptions([&]() {
      depth =
          depthOf(capnp::toAny(context.getParams()).getPointerSection()[0].getAs<rpc::Message>());
    });
    return kj::READY_NOW;
  });
  sendBootstrap(peers);
  peers.receive();
  for (const int bomb : {8, 40}) {
    SCOPED_TRACE(bomb);
    capnp::MallocMessageBuilder message;
    writeCall(message, static_cast<std::uint32_t>(bomb));
    auto content = message.getRoot<rpc::Message>().getCall().getParams().getContent();
    nest(content.initAs<rpc::Message>(), bomb);
    peers.send(message);
    auto answer = peers.receive();
    EXPECT_EQ(cut != nullptr, bomb == 40);
  }
  EXPECT_EQ(depth, 7);
}

TEST(RpcPeer, MessagesOfThreePartiesEndTheConnection) {
  const std::vector<std::function<void(rpc::Message::Builder)>> forged{
      [](auto message) { message.initProvide(); },
      [](auto message) { message.initAccept(); },
      [](auto message) { message.initJoin(); },
      [](auto message) { message.initObsoleteSave(); },
      [](auto message) { message.initObsoleteDelete(); },
      [](auto message) { message.initCall().getSendResultsTo().initThirdParty(); },
      [](auto message) { message.initReturn().initAcceptFromThirdParty(); },
      [](auto message) { message.initResolve().initCap().initThirdPartyHosted(); },
      [](auto message) {
        message.initCall().initParams().initCapTable(1)[0].initThirdPartyHosted();
      },
      [](auto message) {
        message.initReturn().initResults().initCapTable(1)[0].initThirdPartyHosted();
      },
      [](auto message) { message.initDisembargo().getContext().setAccept(); },
      [](auto message) { message.initDisembargo().getContext().setProvide(1); },
  };
  for (std::size_t i = 0; i < forged.size(); ++i) {
    SCOPED_TRACE(i);
    ServedStream peers(giveZeros);
    capnp::MallocMessageBuilder message;
    forged[i](message.initRoot<rpc::Message>());
    peers.send(message);
    EXPECT_EQ(peers.waitEnd(), ErrorCode::BAD_MESSAGE);
  }
}

TEST(RpcPeer, TooManyCapabilitiesInAMessageEndTheConnection) {
  ServedStream peers(giveZeros);
  sendBootstrap(peers);
  capnp::MallocMessageBuilder message;
  writeCall(message, 1);
  auto table = message.getRoot<rpc::Message>().getCall().getParams().initCapTable(17);
  for (std::uint32_t i = 0; i < table.size(); ++i) table[i].setSenderHosted(i);
  peers.send(message);
  EXPECT_EQ(peers.waitEnd(), ErrorCode::MESSAGE_TOO_LARGE);
}

TEST(RpcPeer, AQuestionThatIsAskedTwiceEndsTheConnection) {
  ServedStream peers(giveZeros);
  sendBootstrap(peers);
  sendBootstrap(peers);
  EXPECT_EQ(peers.waitEnd(), ErrorCode::BAD_MESSAGE);
}

TEST(RpcPeer, TellsThePeerWhyItEnds) {
  ServedStream peers(giveZeros);
  const std::uint32_t wrapped[] = {0xffffffff, 0};
  peers.send(wrapped, sizeof(wrapped));
  auto last = peers.receive();
  const auto root = last->getRoot<rpc::Message>();
  ASSERT_TRUE(root.isAbort());
  EXPECT_EQ(std::string(root.getAbort().getReason().cStr()), "cordon:bad-message");
  EXPECT_EQ(peers.waitEnd(), ErrorCode::BAD_MESSAGE);
}

TEST(RpcPeer, AFinishOfNothingEndsTheConnection) {
  ServedStream peers(giveZeros);
  capnp::MallocMessageBuilder message;
  message.initRoot<rpc::Message>().initFinish().setQuestionId(7);
  peers.send(message);
  EXPECT_EQ(peers.waitEnd(), ErrorCode::BAD_MESSAGE);
}

TEST(RpcPeer, TakesAsManyCallsAsItsLimitAndNotOneMore) {
  bool cancelled = false;
  PeerLimits limits = quickLimits();
  limits.callsInFlight = 8;
  ServedClient peers(never(cancelled), limits);
  auto source = peers.source();
  source.whenResolved().wait(peers.io.waitScope);
  std::vector<kj::Promise<std::size_t>> calls;
  calls.reserve(9);
  for (int i = 0; i < 8; ++i) calls.push_back(peers.read(source, 1));
  while (peers.server->callsInFlight() < 8) peers.io.waitScope.poll();
  EXPECT_FALSE(peers.ending.addBranch().poll(peers.io.waitScope));
  calls.push_back(peers.read(source, 1));
  EXPECT_EQ(peers.waitEnd(), ErrorCode::TOO_MANY_CALLS);
  EXPECT_TRUE(cancelled);
}

TEST(RpcPeer, AnswersThatAreNeverFinishedEndTheConnection) {
  PeerLimits limits = quickLimits();
  limits.unfinishedAnswers = 8;
  ServedStream peers(giveZeros, limits);
  sendBootstrap(peers);
  for (std::uint32_t question = 1; question < 8; ++question) {
    capnp::MallocMessageBuilder message;
    writeCall(message, question);
    peers.send(message);
  }
  for (int i = 0; i < 8; ++i) peers.receive();
  capnp::MallocMessageBuilder message;
  writeCall(message, 8);
  peers.send(message);
  EXPECT_EQ(peers.waitEnd(), ErrorCode::TOO_MANY_CALLS);
}

TEST(RpcPeer, APeerThatDoesNotReadIsDropped) {
  ServedStream peers(giveZeros);
  sendBootstrap(peers);
  // More than a socket buffers, and never read.
  for (std::uint32_t question = 1; question <= 8; ++question) {
    capnp::MallocMessageBuilder message;
    writeCall(message, question, 200'000);
    peers.send(message);
  }
  EXPECT_EQ(peers.waitEnd(), ErrorCode::STALLED_PEER);
}

TEST(RpcPeer, AQueueOverItsLimitEndsTheConnectionBeforeItsTime) {
  PeerLimits limits = quickLimits();
  limits.stallTime = 1 * kj::HOURS;
  limits.watchInterval = 1 * kj::HOURS;
  limits.queueBytes = 1'000'000;
  ServedStream peers(giveZeros, limits);
  sendBootstrap(peers);
  for (std::uint32_t question = 1; question <= 16; ++question) {
    capnp::MallocMessageBuilder message;
    writeCall(message, question, 200'000);
    peers.send(message);
    peers.io.waitScope.poll();
  }
  // The watch is off: it is the reading of the next message that tells. Then Cap'n Proto waits for
  // a write that nobody takes, until the peer goes.
  peers.raw = nullptr;
  EXPECT_EQ(peers.waitEnd(), ErrorCode::STALLED_PEER);
}

TEST(RpcPeer, AMessageThatDoesNotEndEndsTheConnection) {
  for (const std::size_t sent : {1u, 7u, 8u, 12u}) {
    SCOPED_TRACE(sent);
    ServedStream peers(giveZeros);
    const std::uint32_t start[] = {0, 4, 0};
    peers.send(start, sent);
    EXPECT_EQ(peers.waitEnd(), ErrorCode::STALLED_PEER);
  }
}

TEST(RpcPeer, ASilentPeerIsNoStalledOne) {
  ServedStream peers(giveZeros);
  peers.timer().afterDelay(300 * kj::MILLISECONDS).wait(peers.io.waitScope);
  EXPECT_FALSE(peers.ending.addBranch().poll(peers.io.waitScope));
}

TEST(RpcPeer, ACallOverItsTimeEndsTheConnection) {
  bool cancelled = false;
  PeerLimits limits = quickLimits();
  limits.callTime = 50 * kj::MILLISECONDS;
  ServedClient peers(never(cancelled), limits);
  auto source = peers.source();
  auto call = peers.read(source, 1);
  EXPECT_EQ(peers.waitEnd(), ErrorCode::DEADLINE);
  EXPECT_TRUE(cancelled);
}

TEST(RpcPeer, ACallOfOursHasADeadline) {
  bool cancelled = false;
  Loop loop;
  auto pipe = loop.io.provider->newTwoWayPipe();
  capnp::TwoPartyServer server(kj::heap<ScriptedSource>(never(cancelled)));
  server.accept(kj::mv(pipe.ends[0]));
  RpcPeer client(kj::mv(pipe.ends[1]), RpcPeer::Side::CLIENT, nullptr, quickLimits(), loop.timer());
  auto source = client.bootstrap().castAs<protocols::ByteSource>();
  auto call = client.within(50 * kj::MILLISECONDS,
                            kj::Promise<void>(source.readRequest().send().ignoreResult()));
  EXPECT_EQ(codeOf(failureOf(kj::mv(call), loop.io.waitScope)), ErrorCode::DEADLINE);
  // The other side learns of it.
  loop.waitUntil([&] { return cancelled; });
}

TEST(RpcPeer, ADisconnectDuringACallCancelsIt) {
  bool cancelled = false;
  ServedStream peers(never(cancelled));
  sendBootstrap(peers);
  capnp::MallocMessageBuilder message;
  writeCall(message, 1);
  peers.send(message);
  while (peers.server->callsInFlight() == 0) peers.io.waitScope.poll();
  peers.receive();
  EXPECT_FALSE(cancelled);
  peers.raw = nullptr;
  EXPECT_EQ(peers.waitEnd(), ErrorCode::DISCONNECTED);
  EXPECT_TRUE(cancelled);
}

TEST(RpcPeer, ACallInFlightFailsWhenTheServerEnds) {
  bool cancelled = false;
  ServedClient peers(never(cancelled));
  auto source = peers.source();
  auto call = peers.read(source, 1);
  while (peers.server->callsInFlight() == 0) peers.io.waitScope.poll();
  peers.server->end(ErrorCode::CANCELLED);
  EXPECT_EQ(peers.waitEnd(), ErrorCode::CANCELLED);
  EXPECT_EQ(failureOf(kj::mv(call), peers.io.waitScope).getType(),
            kj::Exception::Type::DISCONNECTED);
}

TEST(RpcPeer, GarbageAfterEveryPrefixEndsTheConnection) {
  capnp::MallocMessageBuilder message;
  writeCall(message, 1);
  message.getRoot<rpc::Message>().getCall().getTarget().setImportedCap(0);
  const auto bytes = flat(message);
  for (std::size_t prefix = 0; prefix <= bytes.size(); ++prefix) {
    SCOPED_TRACE(prefix);
    ServedStream peers(giveZeros);
    auto sent = bytes;
    sent.resize(prefix);
    sent.resize(prefix + bytes.size() + 64, 0xff);
    peers.send(sent.data(), sent.size());
    peers.raw->shutdownWrite();
    const ErrorCode reason = peers.waitEnd();
    EXPECT_TRUE(reason == ErrorCode::BAD_MESSAGE || reason == ErrorCode::MESSAGE_TOO_LARGE ||
                reason == ErrorCode::DISCONNECTED)
        << name(reason);
  }
}

TEST(RpcPeer, AnEndAtEveryByteEndsTheConnection) {
  capnp::MallocMessageBuilder message;
  message.initRoot<rpc::Message>().initBootstrap().setQuestionId(0);
  const auto bytes = flat(message);
  for (std::size_t prefix = 0; prefix <= bytes.size(); ++prefix) {
    SCOPED_TRACE(prefix);
    ServedStream peers(giveZeros);
    if (prefix > 0) peers.send(bytes.data(), prefix);
    peers.raw = nullptr;
    EXPECT_EQ(peers.waitEnd(), ErrorCode::DISCONNECTED);
  }
}

}  // namespace
}  // namespace cordon::ipc
