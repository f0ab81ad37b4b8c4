#include "services/parser/reception.h"

#include <algorithm>
#include <utility>

#include <kj/debug.h>

namespace cordon::parser {
namespace {

template <typename T>
bool is(const channel::Body& body) {
  return std::holds_alternative<T>(body);
}

kj::ArrayPtr<const kj::byte> asKj(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

kj::Promise<bool> succeeds(kj::Promise<void> promise) {
  return promise.then([]() { return true; }, [](kj::Exception&&) { return false; });
}

}  // namespace

Reception::Reception(Operation kind, channel::Id wanted, std::uint64_t cap,
                     kj::Maybe<BulkSink&> outputSink, kj::Maybe<BulkSink&> errorSink)
    : operation(kind), target(wanted), bulkCap(cap), output(outputSink), errors(errorSink) {}

void Reception::begin(std::optional<channel::Id> pollId) {
  poll = pollId;
  split = 0;
  position = 0;
  outputCheck.restart();
  errorsCheck.restart();
}

bool Reception::answersTarget(const channel::Body& body) const {
  if (is<channel::Error>(body)) return true;
  switch (operation) {
    case Operation::PING:
      return is<channel::Pong>(body);
    case Operation::EXEC:
      return is<channel::ExecResult>(body);
    case Operation::READ_FILE:
      return is<channel::FileData>(body);
    case Operation::WRITE_FILE:
    case Operation::ACK:
      return is<channel::Ok>(body);
    case Operation::POLL:
      return is<channel::ExecResult>(body) || is<channel::FileData>(body) || is<channel::Ok>(body);
    case Operation::DIAG:
      return is<channel::DiagResult>(body);
  }
  return false;
}

std::optional<TamperClass> Reception::judge(const channel::Message& message) {
  const bool ofPoll = poll && message.id == *poll;
  if (!ofPoll && message.id != target) return TamperClass::WRONG_ID;
  if (ofPoll) {
    if (const auto* pending = std::get_if<channel::Pending>(&message.body)) {
      if (pending->targetId != target) return TamperClass::WRONG_ID;
      // It had ended, and its reply was on the way.
      if (first) return TamperClass::REPLAY_DIFFERS;
      return std::nullopt;
    }
    if (!is<channel::Error>(message.body)) return TamperClass::WRONG_KIND;
  } else if (!answersTarget(message.body)) {
    return TamperClass::WRONG_KIND;
  }
  if (const auto* error = std::get_if<channel::Error>(&message.body)) {
    if (error->layer && *error->layer != channel::BudgetLayer::COMMAND)
      return TamperClass::FOREIGN_LAYER;
    // What it says of the poll or of the store is not the target's reply.
    if (ofPoll || error->errnoName == "ESTALE") return std::nullopt;
  }
  if (const auto* diag = std::get_if<channel::DiagResult>(&message.body))
    if (std::cmp_greater(diag->entries.size(), maxEntries)) return TamperClass::INVALID_MESSAGE;
  return judgeReplay(message);
}

std::optional<TamperClass> Reception::judgeReplay(const channel::Message& message) {
  if (!isDurable(operation) && operation != Operation::POLL) return std::nullopt;
  if (first && *first != message) return TamperClass::REPLAY_DIFFERS;
  if (!first) first = message;
  if (const auto* result = std::get_if<channel::ExecResult>(&message.body))
    split = static_cast<std::uint64_t>(result->stdoutSize);
  else
    split = static_cast<std::uint64_t>(message.dataSize().value_or(0));
  return std::nullopt;
}

bool Reception::isAboutPoll(const channel::Message& message) const {
  return poll && message.id == *poll;
}

Reception::Take Reception::take(std::span<const std::byte>& bytes) {
  const bool isOutput = position < split;
  const std::size_t most =
      isOutput ? static_cast<std::size_t>(std::min<std::uint64_t>(split - position, bytes.size()))
               : bytes.size();
  const std::span<const std::byte> part = bytes.first(std::min(most, BULK_CHUNK));
  bytes = bytes.subspan(part.size());
  position += part.size();
  ReplayCheck& check = isOutput ? outputCheck : errorsCheck;
  const auto fresh = check.add(part);
  if (!fresh) return Differs{check.replayed()};
  if (fresh->empty()) return Taken{};
  KJ_IF_MAYBE (sink, isOutput ? output : errors)
    return succeeds(kj::evalNow([&]() { return sink->write(asKj(*fresh)); }));
  return Taken{};
}

kj::Promise<bool> Reception::end() {
  const auto endOf = [](const kj::Maybe<BulkSink&>& sink) -> kj::Promise<bool> {
    KJ_IF_MAYBE (open, sink) return succeeds(kj::evalNow([&]() { return open->end(); }));
    return true;
  };
  return endOf(output).then([this, endOf](bool ended) -> kj::Promise<bool> {
    if (!ended) return false;
    return endOf(errors);
  });
}

}  // namespace cordon::parser
