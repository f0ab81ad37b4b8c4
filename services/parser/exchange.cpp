#include "services/parser/exchange.h"

#include <optional>
#include <utility>

#include <kj/debug.h>

#include "common/channel/encoder.h"

namespace cordon::parser {
namespace {

using Result = Outcome<Answer>;

class Exchange {
 public:
  Exchange(Line& on, Request& what, Reception& expected, Bounds within)
      : line(on), request(what), reception(expected), bounds(within) {}
  KJ_DISALLOW_COPY(Exchange);

  kj::Promise<Result> attempt() {
    const kj::TimePoint now = line.timer.now();
    if (now >= bounds.deadline) return fail(BudgetFailure{channel::BudgetLayer::UNTIMED, {}});
    ++attempts;
    reception.begin(request.isPoll ? std::optional(request.id) : std::nullopt);
    window.emplace(line.timer, bounds.allowance, bounds.deadline);
    return roundTrip(line.transport, line.timer, line.trace, request, reception, *window)
        .then([this](RoundTripEnd&& end) { return judge(std::move(end)); });
  }

 private:
  kj::Promise<Result> judge(RoundTripEnd end) {
    if (end.delivered) ++deliveries;
    if (auto* message = std::get_if<channel::Message>(&end.what))
      return Result(Answer{.message = std::move(*message), .deliveries = deliveries});
    if (const auto* tamper = std::get_if<Tamper>(&end.what)) return fail(*tamper);
    if (const auto* error = std::get_if<StreamError>(&end.what)) return fail(*error);
    if (std::holds_alternative<Expired>(end.what)) {
      const bool all = line.timer.now() >= bounds.deadline;
      return fail(
          BudgetFailure{all ? channel::BudgetLayer::UNTIMED : channel::BudgetLayer::CHANNEL, {}});
    }
    if (attempts == EXCHANGE_ATTEMPTS)
      return fail(deliveries == 0 ? LossClass::UNREACHABLE : LossClass::REPLY_LOST);
    const kj::TimePoint next = line.timer.now() + EXCHANGE_BACKOFF * attempts;
    return line.timer.atTime(kj::min(next, bounds.deadline)).then([this]() { return attempt(); });
  }

  template <typename Reason>
  kj::Promise<Result> fail(Reason reason) {
    return Result(Failure{.deliveries = deliveries, .reason = std::move(reason)});
  }

  Line& line;
  Request& request;
  Reception& reception;
  const Bounds bounds;
  unsigned attempts = 0;
  std::uint32_t deliveries = 0;
  std::optional<Window> window;
};

}  // namespace

std::variant<Request, ArgumentError> makeRequest(const channel::Message& message,
                                                 kj::Maybe<BulkSource&> source) {
  auto frame = channel::encodeControl(message);
  if (const auto* error = std::get_if<channel::EncodeError>(&frame))
    return *error == channel::EncodeError::CONTROL_TOO_LARGE ? ArgumentError::REQUEST_TOO_LARGE
                                                             : ArgumentError::BAD_TEXT;
  Request request;
  request.id = message.id;
  request.kind = message.kind();
  request.control = std::move(std::get<std::string>(frame));
  if (const auto size = message.dataSize()) request.size = static_cast<std::uint64_t>(*size);
  request.source = source;
  request.isPoll = std::holds_alternative<channel::Poll>(message.body);
  return request;
}

kj::Promise<Outcome<Answer>> exchange(Line& line, Request& request, Reception& reception,
                                      Bounds bounds) {
  auto loop = kj::heap<Exchange>(line, request, reception, bounds);
  auto promise = loop->attempt();
  return promise.attach(kj::mv(loop));
}

}  // namespace cordon::parser
