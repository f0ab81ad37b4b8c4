// What Cap'n Proto 0.9.2 does by itself, and what RpcPeer makes of it: if the first half of a pair
// fails one day, the library was repaired and the second half may become simpler.
#include <capnp/rpc.capnp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kj/debug.h>

#include "common/ipc/testing/peers.h"

namespace cordon::ipc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing;

constexpr std::uint32_t SECRET_UID = 1879048195;

// A fault as it happens in a service: a failed check, inside a context that was meant for its own
// log.
kj::Promise<void> failWithSecrets(ReadContext) {
  const kj::StringPtr path = "/var/lib/cordon/answer-key";
  KJ_CONTEXT("reading", path);
  KJ_FAIL_REQUIRE("no such challenge", SECRET_UID);
}

std::string plainFailure(Script script) {
  Loop loop;
  auto pipe = loop.io.provider->newTwoWayPipe();
  capnp::TwoPartyServer server(kj::heap<ScriptedSource>(std::move(script)));
  server.accept(kj::mv(pipe.ends[0]));
  capnp::TwoPartyClient client(*pipe.ends[1]);
  auto source = client.bootstrap().castAs<protocols::ByteSource>();
  return textOf(
      failureOf(kj::Promise<void>(source.readRequest().send().ignoreResult()), loop.io.waitScope));
}

TEST(PlainCapnp, SendsFileLineAndArgumentValuesToThePeer) {
  const std::string text = plainFailure(failWithSecrets);
  EXPECT_THAT(text, HasSubstr("no such challenge"));
  EXPECT_THAT(text, HasSubstr("/var/lib/cordon/answer-key"));
  EXPECT_THAT(text, HasSubstr("1879048195"));
  EXPECT_THAT(text, HasSubstr("plain-capnp_test.cpp: "));
}

TEST(RpcPeerErrors, SendsACodeAndNothingElse) {
  ServedClient peers(failWithSecrets);
  auto source = peers.source();
  const auto exception =
      failureOf(kj::Promise<void>(source.readRequest().send().ignoreResult()), peers.io.waitScope);
  EXPECT_EQ(textOf(exception), "remote exception: cordon:internal");
  EXPECT_EQ(exception.getType(), kj::Exception::Type::FAILED);
}

TEST(RpcPeerErrors, NoByteOfTheTextIsOnTheWire) {
  ServedStream peers(failWithSecrets);
  capnp::MallocMessageBuilder bootstrap;
  bootstrap.initRoot<capnp::rpc::Message>().initBootstrap().setQuestionId(0);
  peers.send(bootstrap);
  capnp::MallocMessageBuilder message;
  auto call = message.initRoot<capnp::rpc::Message>().initCall();
  call.setQuestionId(1);
  call.setInterfaceId(capnp::typeId<protocols::ByteSource>());
  call.setMethodId(0);
  call.initTarget().initPromisedAnswer().setQuestionId(0);
  call.initParams().getContent().initAs<protocols::ByteSource::ReadParams>();
  peers.send(message);
  peers.receive();
  auto answer = peers.receive();
  const auto root = answer->getRoot<capnp::rpc::Message>();
  ASSERT_EQ(root.which(), capnp::rpc::Message::RETURN);
  ASSERT_TRUE(root.getReturn().isException());
  EXPECT_EQ(root.getReturn().getAnswerId(), 1u);
  capnp::MallocMessageBuilder copy;
  copy.setRoot(root);
  const auto bytes = flat(copy);
  const std::string text(bytes.begin(), bytes.end());
  EXPECT_THAT(text, HasSubstr("cordon:internal"));
  EXPECT_THAT(text, Not(HasSubstr("challenge")));
  EXPECT_THAT(text, Not(HasSubstr(".cpp")));
  EXPECT_THAT(text, Not(HasSubstr("answer-key")));
}

TEST(RpcPeerErrors, TheCodeOfAServiceGetsThrough) {
  ServedClient peers(
      [](auto) -> kj::Promise<void> { return makeException(ErrorCode::TOO_MANY_CONNECTIONS); });
  auto source = peers.source();
  const auto exception = failureOf(peers.read(source, 1), peers.io.waitScope);
  EXPECT_EQ(textOf(exception), "remote exception: cordon:too-many-connections");
  EXPECT_EQ(codeOf(exception), ErrorCode::TOO_MANY_CONNECTIONS);
  EXPECT_EQ(exception.getType(), kj::Exception::Type::OVERLOADED);
}

TEST(RpcPeerErrors, ContextAroundACodeDoesNot) {
  ServedClient peers([](auto) -> kj::Promise<void> {
    KJ_CONTEXT("while doing a secret thing", SECRET_UID);
    kj::throwFatalException(makeException(ErrorCode::BAD_ARGUMENT));
  });
  auto source = peers.source();
  EXPECT_EQ(textOf(failureOf(peers.read(source, 1), peers.io.waitScope)),
            "remote exception: cordon:bad-argument");
}

// Each way in which a text could come in from the peer ends as a code as well.
TEST(RpcPeerErrors, InboundTextsBecomeCodes) {
  Loop loop;
  auto pipe = loop.io.provider->newTwoWayPipe();
  capnp::TwoPartyServer server(kj::heap<ScriptedSource>(failWithSecrets));
  server.accept(kj::mv(pipe.ends[0]));
  RpcPeer client(kj::mv(pipe.ends[1]), RpcPeer::Side::CLIENT, nullptr, quickLimits(), loop.timer());
  auto source = client.bootstrap().castAs<protocols::ByteSource>();
  EXPECT_EQ(textOf(failureOf(kj::Promise<void>(source.readRequest().send().ignoreResult()),
                             loop.io.waitScope)),
            "remote exception: cordon:internal");
}

TEST(RpcPeerErrors, AnAbortOfThePeerBecomesACode) {
  Loop loop;
  auto pipe = loop.io.provider->newTwoWayPipe();
  RpcPeer client(kj::mv(pipe.ends[1]), RpcPeer::Side::CLIENT, nullptr, quickLimits(), loop.timer());
  auto source = client.bootstrap().castAs<protocols::ByteSource>();
  capnp::MallocMessageBuilder message;
  message.initRoot<capnp::rpc::Message>().initAbort().setReason("\x1b[2J<0>forged by a peer");
  capnp::writeMessage(*pipe.ends[0], message).wait(loop.io.waitScope);
  const auto text = textOf(
      failureOf(kj::Promise<void>(source.readRequest().send().ignoreResult()), loop.io.waitScope));
  EXPECT_THAT(text, HasSubstr("cordon:internal"));
  EXPECT_THAT(text, Not(HasSubstr("forged")));
}

// First word 0xffffffff: the count wraps to 0. What follows is read as if a message stood there.
constexpr std::uint32_t WRAPPED[] = {0xffffffff, 0, 0, 0, 0, 0};

TEST(PlainCapnp, AcceptsASegmentCountThatWraps) {
  Loop loop;
  auto pipe = loop.io.provider->newTwoWayPipe();
  pipe.ends[1]->write(WRAPPED, sizeof(WRAPPED)).wait(loop.io.waitScope);
  const auto message = capnp::tryReadMessage(*pipe.ends[0]).wait(loop.io.waitScope);
  EXPECT_TRUE(message != nullptr);
}

TEST(RpcPeerFraming, RefusesASegmentCountThatWraps) {
  ServedStream peers(giveZeros);
  peers.send(WRAPPED, sizeof(WRAPPED));
  EXPECT_EQ(peers.waitEnd(), ErrorCode::BAD_MESSAGE);
}

}  // namespace
}  // namespace cordon::ipc
