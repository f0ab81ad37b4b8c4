#include "common/ipc/inspect.h"

#include <algorithm>
#include <string_view>

#include <kj/debug.h>

namespace cordon::ipc {
namespace {

namespace rpc = capnp::rpc;

constexpr capnp::uint REPLACEMENT_WORDS = 32;
// Longer than any text that carries a code: what a peer puts behind it is not looked at.
constexpr std::size_t MAX_CODED_TEXT = 128;

ErrorCode codeOfType(rpc::Exception::Type type) {
  switch (type) {
    case rpc::Exception::Type::OVERLOADED:
      return ErrorCode::OVERLOADED;
    case rpc::Exception::Type::DISCONNECTED:
      return ErrorCode::DISCONNECTED;
    case rpc::Exception::Type::UNIMPLEMENTED:
      return ErrorCode::UNIMPLEMENTED;
    default:
      return ErrorCode::INTERNAL;
  }
}

void writeCode(rpc::Exception::Reader from, rpc::Exception::Builder to) {
  const capnp::Text::Reader reason = from.getReason();
  const std::string_view text(reason.begin(), std::min<std::size_t>(reason.size(), MAX_CODED_TEXT));
  const kj::Exception clean = makeException(parseCode(text).value_or(codeOfType(from.getType())));
  to.setReason(clean.getDescription());
  to.setType(static_cast<rpc::Exception::Type>(clean.getType()));
}

// `message` is an abort, or a return or resolve that is an exception.
Verdict withoutText(rpc::Message::Reader message) {
  auto builder = std::make_unique<capnp::MallocMessageBuilder>(REPLACEMENT_WORDS);
  auto root = builder->initRoot<rpc::Message>();
  switch (message.which()) {
    case rpc::Message::ABORT:
      writeCode(message.getAbort(), root.initAbort());
      break;
    case rpc::Message::RETURN: {
      const auto from = message.getReturn();
      auto to = root.initReturn();
      to.setAnswerId(from.getAnswerId());
      to.setReleaseParamCaps(from.getReleaseParamCaps());
      writeCode(from.getException(), to.initException());
      break;
    }
    case rpc::Message::RESOLVE: {
      const auto from = message.getResolve();
      auto to = root.initResolve();
      to.setPromiseId(from.getPromiseId());
      writeCode(from.getException(), to.initException());
      break;
    }
    default:
      KJ_UNREACHABLE;
  }
  return builder;
}

bool isTwoParty(rpc::CapDescriptor::Reader capability) {
  switch (capability.which()) {
    case rpc::CapDescriptor::NONE:
    case rpc::CapDescriptor::SENDER_HOSTED:
    case rpc::CapDescriptor::SENDER_PROMISE:
    case rpc::CapDescriptor::RECEIVER_HOSTED:
    case rpc::CapDescriptor::RECEIVER_ANSWER:
      return true;
    default:
      return false;
  }
}

std::optional<ErrorCode> checkPayload(rpc::Payload::Reader payload, const PeerLimits& limits) {
  // Each capability costs far more here than the two words it takes in the message.
  const auto table = payload.getCapTable();
  if (table.size() > limits.capabilities) return ErrorCode::MESSAGE_TOO_LARGE;
  for (const auto capability : table) {
    if (!isTwoParty(capability)) return ErrorCode::BAD_MESSAGE;
  }
  return std::nullopt;
}

Verdict verdict(std::optional<ErrorCode> error) {
  if (error) return *error;
  return Pass{};
}

Verdict inspectCall(rpc::Call::Reader call, AnswerTable& answers, const PeerLimits& limits,
                    kj::TimePoint now) {
  if (call.getSendResultsTo().isThirdParty()) return ErrorCode::BAD_MESSAGE;
  if (const auto error = checkPayload(call.getParams(), limits)) return *error;
  return verdict(answers.called(call.getQuestionId(), now));
}

Verdict inspectReturn(rpc::Message::Reader message, const PeerLimits& limits) {
  const auto answer = message.getReturn();
  switch (answer.which()) {
    case rpc::Return::EXCEPTION:
      return withoutText(message);
    case rpc::Return::RESULTS:
      return verdict(checkPayload(answer.getResults(), limits));
    case rpc::Return::CANCELED:
    case rpc::Return::RESULTS_SENT_ELSEWHERE:
    case rpc::Return::TAKE_FROM_OTHER_QUESTION:
      return Pass{};
    default:
      return ErrorCode::BAD_MESSAGE;
  }
}

Verdict inspectResolve(rpc::Message::Reader message) {
  const auto resolve = message.getResolve();
  switch (resolve.which()) {
    case rpc::Resolve::EXCEPTION:
      return withoutText(message);
    case rpc::Resolve::CAP:
      if (isTwoParty(resolve.getCap())) return Pass{};
      return ErrorCode::BAD_MESSAGE;
    default:
      return ErrorCode::BAD_MESSAGE;
  }
}

Verdict inspectDisembargo(rpc::Disembargo::Reader disembargo) {
  const auto context = disembargo.getContext();
  if (context.isSenderLoopback() || context.isReceiverLoopback()) return Pass{};
  return ErrorCode::BAD_MESSAGE;
}

}  // namespace

AnswerTable::AnswerTable(const PeerLimits& peerLimits) : limits(peerLimits) {}

std::optional<ErrorCode> AnswerTable::called(std::uint32_t id, kj::TimePoint now) {
  if (inFlight >= limits.callsInFlight) return ErrorCode::TOO_MANY_CALLS;
  if (answers.size() - inFlight >= limits.unfinishedAnswers) return ErrorCode::TOO_MANY_CALLS;
  if (!answers.emplace(id, Answer{.calledAt = now}).second) return ErrorCode::BAD_MESSAGE;
  ++inFlight;
  return std::nullopt;
}

std::optional<ErrorCode> AnswerTable::finished(std::uint32_t id) {
  const auto found = answers.find(id);
  if (found == answers.end() || found->second.finished) return ErrorCode::BAD_MESSAGE;
  found->second.finished = true;
  if (found->second.returned) answers.erase(found);
  return std::nullopt;
}

void AnswerTable::returned(std::uint32_t id) {
  const auto found = answers.find(id);
  KJ_REQUIRE(found != answers.end() && !found->second.returned, "a return without a call");
  found->second.returned = true;
  --inFlight;
  if (found->second.finished) answers.erase(found);
}

bool AnswerTable::hasCallBefore(kj::TimePoint moment) const {
  return std::any_of(answers.begin(), answers.end(), [moment](const auto& entry) {
    return !entry.second.returned && entry.second.calledAt < moment;
  });
}

Verdict inspectInbound(rpc::Message::Reader message, AnswerTable& answers, const PeerLimits& limits,
                       kj::TimePoint now) {
  switch (message.which()) {
    case rpc::Message::ABORT:
      return withoutText(message);
    case rpc::Message::BOOTSTRAP:
      return verdict(answers.called(message.getBootstrap().getQuestionId(), now));
    case rpc::Message::CALL:
      return inspectCall(message.getCall(), answers, limits, now);
    case rpc::Message::RETURN:
      return inspectReturn(message, limits);
    case rpc::Message::FINISH:
      return verdict(answers.finished(message.getFinish().getQuestionId()));
    case rpc::Message::RESOLVE:
      return inspectResolve(message);
    case rpc::Message::DISEMBARGO:
      return inspectDisembargo(message.getDisembargo());
    case rpc::Message::RELEASE:
    case rpc::Message::UNIMPLEMENTED:
      return Pass{};
    // Of the three-party protocol, obsolete, or unknown.
    default:
      return ErrorCode::BAD_MESSAGE;
  }
}

Verdict inspectOutbound(rpc::Message::Reader message, AnswerTable& answers) {
  switch (message.which()) {
    case rpc::Message::ABORT:
      return withoutText(message);
    case rpc::Message::RETURN:
      answers.returned(message.getReturn().getAnswerId());
      if (message.getReturn().isException()) return withoutText(message);
      return Pass{};
    case rpc::Message::RESOLVE:
      if (message.getResolve().isException()) return withoutText(message);
      return Pass{};
    default:
      return Pass{};
  }
}

}  // namespace cordon::ipc
