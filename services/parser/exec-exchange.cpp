#include <optional>
#include <utility>

#include <kj/debug.h>

#include "services/parser/exchange.h"

namespace cordon::parser {
namespace {

using Result = Outcome<Answer>;
using channel::BudgetLayer;

constexpr kj::Duration NONE = 0 * kj::NANOSECONDS;

// Sends the request until it may have been delivered, then asks with polls what became of it. It is
// never sent under another id, and an unknown id is final: delivery cannot be ruled out.
class ExecExchange {
 public:
  ExecExchange(Line& on, Request& what, Reception& expected, Bounds within,
               kj::Maybe<kj::Duration> commandBound)
      : line(on), request(what), reception(expected), bounds(within), start(on.timer.now()) {
    KJ_IF_MAYBE (command, commandBound)
      commandDeadline = kj::min(start + *command + OBSERVATION_GRACE, bounds.deadline);
  }
  KJ_DISALLOW_COPY(ExecExchange);

  kj::Promise<Result> step() {
    const kj::TimePoint now = line.timer.now();
    if (now >= bounds.deadline) return fail(BudgetFailure{BudgetLayer::UNTIMED, {}});
    if (now >= commandEnd())
      return fail(BudgetFailure{wasAlive() ? BudgetLayer::COMMAND : BudgetLayer::CHANNEL, {}});
    if (polling) {
      auto made = makeRequest({.id = line.ids.next(), .body = channel::Poll{request.id}});
      pollRequest = std::move(std::get<Request>(made));
      reception.begin(pollRequest->id);
    } else {
      reception.begin(std::nullopt);
    }
    window.emplace(line.timer, nextWindow(), bounds.deadline);
    isFirst = false;
    return roundTrip(line.transport, line.timer, line.trace, polling ? *pollRequest : request,
                     reception, *window)
        .then([this](RoundTripEnd&& end) {
          stalled += window->stalled();
          return judge(std::move(end));
        });
  }

 private:
  // The command's bound, moved by what the caller's own streams held up.
  [[nodiscard]] kj::TimePoint commandEnd() const {
    KJ_IF_MAYBE (deadline, commandDeadline) return kj::min(*deadline + stalled, bounds.deadline);
    return bounds.deadline;
  }

  // Liveness of long ago must not turn a later stall into a verdict on the command.
  [[nodiscard]] bool wasAlive() const {
    KJ_IF_MAYBE (seen, lastPending)
      return line.timer.now() - *seen <=
             kj::max(bounds.allowance, POLL_INTERVAL) * 2 + OBSERVATION_GRACE;
    return false;
  }

  // The first one is shortened so that a poll fits before the command's bound.
  [[nodiscard]] kj::Duration nextWindow() const {
    const kj::Duration left = commandEnd() - line.timer.now();
    const kj::Duration whole = kj::min(bounds.allowance, left);
    if (!isFirst || whole < left) return whole;
    const kj::Duration forPoll = kj::min(bounds.allowance, 1500 * kj::MILLISECONDS);
    return kj::max(kj::max(left - forPoll, left / 2), 50 * kj::MILLISECONDS);
  }

  kj::Promise<Result> judge(RoundTripEnd end) {
    if (end.delivered && !polling) ++deliveries;
    if (auto* message = std::get_if<channel::Message>(&end.what)) {
      losses = 0;
      silent = 0;
      return judgeReply(std::move(*message));
    }
    if (const auto* tamper = std::get_if<Tamper>(&end.what)) return fail(*tamper);
    if (const auto* error = std::get_if<StreamError>(&end.what)) return fail(*error);
    if (std::holds_alternative<Expired>(end.what)) {
      polling = true;
      if (lastPending == nullptr && ++silent == SILENT_WINDOWS)
        return fail(BudgetFailure{BudgetLayer::CHANNEL, {}});
      return step();
    }
    if (++losses > EXEC_LOSSES)
      return fail(deliveries == 0 ? LossClass::UNREACHABLE : LossClass::REPLY_LOST);
    return pause(EXCHANGE_BACKOFF * losses);
  }

  kj::Promise<Result> judgeReply(channel::Message message) {
    if (!reception.isAboutPoll(message))
      return Result(Answer{.message = std::move(message), .deliveries = deliveries});
    if (const auto* error = std::get_if<channel::Error>(&message.body)) {
      if (error->errnoName == "ESTALE") return fail(LossClass::STALE);
      if (error->errnoName == "ENOENT") return fail(LossClass::UNKNOWN_ID);
      return fail(GuestError{.errnoName = error->errnoName, .message = error->message});
    }
    lastPending = line.timer.now();
    return pause(POLL_INTERVAL);
  }

  kj::Promise<Result> pause(kj::Duration duration) {
    return line.timer.atTime(kj::min(line.timer.now() + duration, commandEnd())).then([this]() {
      return step();
    });
  }

  template <typename Reason>
  kj::Promise<Result> fail(Reason reason) {
    return Result(Failure{.deliveries = deliveries, .reason = std::move(reason)});
  }

  Line& line;
  Request& request;
  Reception& reception;
  const Bounds bounds;
  const kj::TimePoint start;
  kj::Maybe<kj::TimePoint> commandDeadline;

  bool isFirst = true;
  bool polling = false;  // for good, once a window ran out
  unsigned losses = 0;   // in a row
  unsigned silent = 0;   // windows in a row, while no `pending` was ever seen
  std::uint32_t deliveries = 0;
  kj::Maybe<kj::TimePoint> lastPending;
  kj::Duration stalled = NONE;
  std::optional<Request> pollRequest;
  std::optional<Window> window;
};

}  // namespace

kj::Promise<Outcome<Answer>> execExchange(Line& line, Request& request, Reception& reception,
                                          Bounds bounds, kj::Maybe<kj::Duration> commandBound) {
  auto loop = kj::heap<ExecExchange>(line, request, reception, bounds, commandBound);
  auto promise = loop->step();
  return promise.attach(kj::mv(loop));
}

}  // namespace cordon::parser
