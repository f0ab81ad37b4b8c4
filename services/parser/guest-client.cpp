#include "services/parser/guest-client.h"

#include <optional>
#include <sys/random.h>
#include <utility>

#include <kj/debug.h>

#include "services/parser/arguments.h"
#include "services/parser/exchange.h"
#include "services/parser/session-check.h"

namespace cordon::parser {
namespace {

using channel::BudgetLayer;
using channel::Id;

bool isTimeout(const channel::Error& error) {
  return error.errnoName == "ETIME" || error.errnoName == "ETIMEDOUT";
}

bool isForTheRecord(const Failure& failure) {
  return std::holds_alternative<Tamper>(failure.reason) ||
         std::holds_alternative<BudgetFailure>(failure.reason) ||
         std::holds_alternative<LossClass>(failure.reason);
}

}  // namespace

Id KernelIdSource::next() {
  Id id;
  const ssize_t size = getrandom(id.bytes.data(), id.bytes.size(), 0);
  KJ_REQUIRE(size == static_cast<ssize_t>(id.bytes.size()), "no randomness");
  return id;
}

struct GuestClient::Impl {
  Line line;
  VerdictLog& log;
  ClientOptions options;
  kj::Maybe<Id> pinned;

  // One operation from its first byte to its verdict.
  struct Call {
    Call(Impl& of, Operation kind, Request what, const channel::Budget& budget, Id target,
         std::uint64_t bulkCap, kj::Maybe<BulkSink&> output = nullptr,
         kj::Maybe<BulkSink&> errors = nullptr)
        : impl(of),
          operation(kind),
          request(std::move(what)),
          reception(kind, target, bulkCap, output, errors),
          bounds(of.boundsOf(budget)),
          pinnedAtStart(of.pinned) {}
    KJ_DISALLOW_COPY(Call);

    Impl& impl;
    const Operation operation;
    Request request;
    Reception reception;
    const Bounds bounds;
    const kj::Maybe<Id> pinnedAtStart;

    kj::Promise<Outcome<Answer>> run() {
      return settle(exchange(impl.line, request, reception, bounds));
    }
    kj::Promise<Outcome<Answer>> runExec(std::optional<std::int64_t> commandMs) {
      kj::Maybe<kj::Duration> command;
      if (commandMs) command = *commandMs * kj::MILLISECONDS;
      return settle(execExchange(impl.line, request, reception, bounds, command));
    }

   private:
    kj::Promise<Outcome<Answer>> settle(kj::Promise<Outcome<Answer>> promise) {
      return promise.then([this](Outcome<Answer>&& outcome) { return finish(std::move(outcome)); })
          .then([this](Outcome<Answer>&& outcome) { return certify(std::move(outcome)); })
          .then([this](Outcome<Answer>&& outcome) {
            const auto* failure = std::get_if<Failure>(&outcome);
            if (failure != nullptr && isForTheRecord(*failure))
              impl.log.verdict(request.kind, request.id, *failure, false, impl.line.trace.tail());
            return std::move(outcome);
          });
    }

    // Ends the sinks, acknowledges, and makes failures of the guest's errors.
    kj::Promise<Outcome<Answer>> finish(Outcome<Answer> outcome) {
      auto* answer = std::get_if<Answer>(&outcome);
      if (answer == nullptr) return outcome;
      const auto* error = std::get_if<channel::Error>(&answer->message.body);
      if (error == nullptr) {
        if (!isDurable(operation)) return outcome;
        return endSinks(std::move(*answer));
      }
      Failure failure{.deliveries = answer->deliveries, .reason = LossClass::STALE};
      if (reception.isAboutPoll(answer->message)) {
        if (error->errnoName == "ENOENT")
          failure.reason = LossClass::UNKNOWN_ID;
        else if (error->errnoName != "ESTALE")
          failure.reason = GuestError{error->errnoName, error->message};
        return Outcome<Answer>(std::move(failure));
      }
      if (error->errnoName == "ESTALE") return Outcome<Answer>(std::move(failure));
      if (isTimeout(*error))
        failure.reason = BudgetFailure{BudgetLayer::COMMAND, error->partial.value_or("")};
      else
        failure.reason = GuestError{error->errnoName, error->message};
      return acknowledged(std::move(failure));
    }

    kj::Promise<Outcome<Answer>> endSinks(Answer answer) {
      // Before the ack: as long as the caller does not have it all, the guest keeps it.
      auto expiry = impl.line.timer.atTime(bounds.deadline).then([]() -> std::optional<bool> {
        return std::nullopt;
      });
      return reception.end()
          .then([](bool ok) { return std::optional(ok); })
          .exclusiveJoin(kj::mv(expiry))
          .then([this, answer = std::move(answer)](
                    std::optional<bool> ended) mutable -> kj::Promise<Outcome<Answer>> {
            if (ended.value_or(false)) return acknowledged(std::move(answer));
            Failure failure{.deliveries = answer.deliveries, .reason = StreamError::FAILED};
            if (!ended) failure.reason = BudgetFailure{BudgetLayer::UNTIMED, {}};
            return Outcome<Answer>(std::move(failure));
          });
    }

    kj::Promise<Outcome<Answer>> acknowledged(Outcome<Answer> outcome) {
      if (!isDurable(operation)) return outcome;
      return impl.acknowledge(request.id)
          .then([outcome = std::move(outcome)](std::optional<Tamper> tamper) mutable {
            if (!tamper) return std::move(outcome);
            const auto* answer = std::get_if<Answer>(&outcome);
            return Outcome<Answer>(
                Failure{.deliveries = answer != nullptr ? answer->deliveries
                                                        : std::get<Failure>(outcome).deliveries,
                        .reason = *tamper});
          });
    }

    kj::Promise<Outcome<Answer>> certify(Outcome<Answer> outcome) {
      const auto* failure = std::get_if<Failure>(&outcome);
      const std::uint32_t deliveries =
          failure != nullptr ? failure->deliveries : std::get<Answer>(outcome).deliveries;
      const SessionCheck check = checkFor(operation, deliveries, failure);
      KJ_IF_MAYBE (expected, pinnedAtStart) {
        if (check == SessionCheck::NONE) return outcome;
        return impl.currentSession().then(
            [this, check, deliveries, session = *expected,
             outcome = std::move(outcome)](std::variant<Id, Failure> found) mutable {
              if (const auto* id = std::get_if<Id>(&found)) {
                if (*id == session) return std::move(outcome);
                impl.pinned = *id;
                return Outcome<Answer>(
                    Failure{.deliveries = deliveries,
                            .reason = SessionChange{.pinned = session, .found = *id}});
              }
              if (const auto* tamper = std::get_if<Tamper>(&std::get<Failure>(found).reason))
                return Outcome<Answer>(Failure{.deliveries = deliveries, .reason = *tamper});
              if (check == SessionCheck::BEST_EFFORT) return std::move(outcome);
              return Outcome<Answer>(
                  Failure{.deliveries = deliveries, .reason = LossClass::UNCERTIFIED});
            });
      }
      return outcome;
    }
  };

  Bounds boundsOf(const channel::Budget& budget) const {
    const kj::Duration total =
        kj::min(budget.untimedBoundMs * kj::MILLISECONDS, options.operationBound);
    kj::Duration allowance = options.allowance;
    if (budget.channelMs)
      // Cut first: 2^53 ms do not fit a Duration.
      allowance = std::min(*budget.channelMs, channel::DEFAULT_UNTIMED_BOUND_MS) * kj::MILLISECONDS;
    return {.allowance = kj::min(allowance, total), .deadline = line.timer.now() + total};
  }

  // A request of the client's own, beside an operation.
  struct Side {
    Side(Operation operation, Request what)
        : request(std::move(what)), reception(operation, request.id, channel::DEFAULT_BULK_CAP) {}
    Request request;
    Reception reception;
  };

  kj::Promise<Outcome<Answer>> onTheSide(Operation operation, channel::Body body,
                                         kj::Duration allowance) {
    auto made = makeRequest({.id = line.ids.next(), .body = std::move(body)});
    auto side = kj::heap<Side>(operation, std::move(std::get<Request>(made)));
    auto promise = exchange(line, side->request, side->reception,
                            {.allowance = allowance, .deadline = line.timer.now() + allowance});
    return promise
        .then([this, &side = *side](Outcome<Answer>&& outcome) {
          const auto* failure = std::get_if<Failure>(&outcome);
          if (failure != nullptr && !std::holds_alternative<Tamper>(failure->reason))
            log.verdict(side.request.kind, side.request.id, *failure, true, line.trace.tail());
          return std::move(outcome);
        })
        .attach(kj::mv(side));
  }

  // An ack that was lost or answered by an error is on the record, and no more: the guest's store
  // is bounded.
  kj::Promise<std::optional<Tamper>> acknowledge(Id target) {
    return onTheSide(Operation::ACK, channel::Ack{target}, options.ackAllowance)
        .then([](Outcome<Answer>&& outcome) -> std::optional<Tamper> {
          if (const auto* failure = std::get_if<Failure>(&outcome))
            if (const auto* tamper = std::get_if<Tamper>(&failure->reason)) return *tamper;
          return std::nullopt;
        });
  }

  kj::Promise<std::variant<Id, Failure>> currentSession() {
    return onTheSide(Operation::PING, channel::Ping{}, options.checkAllowance)
        .then([](Outcome<Answer>&& outcome) -> std::variant<Id, Failure> {
          if (auto* failure = std::get_if<Failure>(&outcome)) return std::move(*failure);
          const auto& answer = std::get<Answer>(outcome);
          if (const auto* pong = std::get_if<channel::Pong>(&answer.message.body))
            return pong->session;
          const auto& error = std::get<channel::Error>(answer.message.body);
          return Failure{.deliveries = answer.deliveries,
                         .reason = GuestError{error.errnoName, error.message}};
        });
  }
};

namespace {

template <typename T>
kj::Promise<Outcome<T>> refuse(ArgumentError error) {
  return Outcome<T>(Failure{.deliveries = 0, .reason = error});
}

// Turns the reply of a call that ended well into the caller's result.
template <typename T, typename Call, typename Convert>
kj::Promise<Outcome<T>> resultOf(kj::Promise<Outcome<Answer>> promise, kj::Own<Call> call,
                                 Convert convert) {
  Call& running = *call;
  return promise
      .then([&running, convert](Outcome<Answer>&& outcome) -> Outcome<T> {
        if (auto* failure = std::get_if<Failure>(&outcome)) return std::move(*failure);
        return convert(running, std::get<Answer>(outcome));
      })
      .attach(kj::mv(call));
}

Finished finishedOf(const channel::ExecResult& result, const Reception& reception,
                    std::uint32_t deliveries) {
  return {.rc = static_cast<std::int32_t>(result.rc),
          .stdoutSize = static_cast<std::uint64_t>(result.stdoutSize),
          .stderrSize = static_cast<std::uint64_t>(result.stderrSize),
          .stdoutTruncated = result.stdoutTruncated,
          .stderrTruncated = result.stderrTruncated,
          .stdoutSha256 = reception.outputDigest(),
          .stderrSha256 = reception.errorsDigest(),
          .deliveries = deliveries};
}

}  // namespace

GuestClient::GuestClient(Transport& transport, kj::Timer& timer, IdSource& ids, VerdictLog& log,
                         ClientOptions options)
    : impl(kj::heap<Impl>(
          Impl{.line = {.transport = transport, .timer = timer, .ids = ids, .trace = {}},
               .log = log,
               .options = options,
               .pinned = nullptr})) {}

GuestClient::~GuestClient() noexcept(false) = default;

kj::Promise<Outcome<Pong>> GuestClient::ping(Id id, channel::Budget budget) {
  if (const auto error = checkBudget(budget)) return refuse<Pong>(*error);
  auto request = makeRequest({.id = id, .body = channel::Ping{}});
  auto call = kj::heap<Impl::Call>(*impl, Operation::PING, std::move(std::get<Request>(request)),
                                   budget, id, channel::DEFAULT_BULK_CAP);
  auto promise = call->run();
  return resultOf<Pong>(kj::mv(promise), kj::mv(call),
                        [](Impl::Call&, Answer& answer) -> Outcome<Pong> {
                          auto& pong = std::get<channel::Pong>(answer.message.body);
                          return Pong{.daemon = std::move(pong.daemon), .session = pong.session};
                        });
}

kj::Promise<Outcome<Pong>> GuestClient::pinSession(Id id, channel::Budget budget) {
  return ping(id, budget).then([this](Outcome<Pong>&& outcome) {
    if (const auto* pong = std::get_if<Pong>(&outcome)) impl->pinned = pong->session;
    return std::move(outcome);
  });
}

kj::Promise<Outcome<Finished>> GuestClient::exec(Id id, channel::Exec command,
                                                 kj::Maybe<BulkSource&> input, BulkSink& output,
                                                 BulkSink& errors) {
  KJ_REQUIRE(command.dataSize.has_value() == (input != nullptr));
  if (const auto error = checkArguments(command)) return refuse<Finished>(*error);
  const channel::Budget budget = command.budget;
  auto request = makeRequest({.id = id, .body = std::move(command)}, input);
  if (const auto* error = std::get_if<ArgumentError>(&request)) return refuse<Finished>(*error);
  auto call = kj::heap<Impl::Call>(*impl, Operation::EXEC, std::move(std::get<Request>(request)),
                                   budget, id, impl->options.execReplyCap, output, errors);
  auto promise = call->runExec(budget.commandMs);
  return resultOf<Finished>(kj::mv(promise), kj::mv(call),
                            [](Impl::Call& done, Answer& answer) -> Outcome<Finished> {
                              return finishedOf(std::get<channel::ExecResult>(answer.message.body),
                                                done.reception, answer.deliveries);
                            });
}

kj::Promise<Outcome<Content>> GuestClient::readFile(Id id, channel::ReadFile file,
                                                    BulkSink& content) {
  if (!file.maxBytes) file.maxBytes = channel::DEFAULT_BULK_CAP;
  if (const auto error = checkArguments(file)) return refuse<Content>(*error);
  const channel::Budget budget = file.budget;
  const auto cap = static_cast<std::uint64_t>(*file.maxBytes);
  auto request = makeRequest({.id = id, .body = std::move(file)});
  if (const auto* error = std::get_if<ArgumentError>(&request)) return refuse<Content>(*error);
  auto call = kj::heap<Impl::Call>(*impl, Operation::READ_FILE,
                                   std::move(std::get<Request>(request)), budget, id, cap, content);
  auto promise = call->run();
  return resultOf<Content>(
      kj::mv(promise), kj::mv(call), [](Impl::Call& done, Answer& answer) -> Outcome<Content> {
        const auto& data = std::get<channel::FileData>(answer.message.body);
        const auto size = static_cast<std::uint64_t>(data.size);
        if (data.truncated)
          return Failure{.deliveries = answer.deliveries, .reason = FileLimit{.written = size}};
        return Content{
            .size = size, .sha256 = done.reception.outputDigest(), .deliveries = answer.deliveries};
      });
}

kj::Promise<Outcome<Written>> GuestClient::writeFile(Id id, channel::WriteFile file,
                                                     BulkSource& content) {
  if (const auto error = checkArguments(file)) return refuse<Written>(*error);
  const channel::Budget budget = file.budget;
  auto request = makeRequest({.id = id, .body = std::move(file)}, content);
  if (const auto* error = std::get_if<ArgumentError>(&request)) return refuse<Written>(*error);
  auto call =
      kj::heap<Impl::Call>(*impl, Operation::WRITE_FILE, std::move(std::get<Request>(request)),
                           budget, id, channel::DEFAULT_BULK_CAP);
  auto promise = call->run();
  return resultOf<Written>(
      kj::mv(promise), kj::mv(call), [](Impl::Call& done, Answer& answer) -> Outcome<Written> {
        return Written{.sha256 = done.request.sent.value(), .deliveries = answer.deliveries};
      });
}

kj::Promise<Outcome<Polled>> GuestClient::poll(Id id, Id target, channel::Budget budget) {
  if (const auto error = checkBudget(budget)) return refuse<Polled>(*error);
  auto request = makeRequest({.id = id, .body = channel::Poll{target}});
  auto call = kj::heap<Impl::Call>(*impl, Operation::POLL, std::move(std::get<Request>(request)),
                                   budget, target, channel::MAX_DECLARED_BULK);
  auto promise = call->run();
  return resultOf<Polled>(
      kj::mv(promise), kj::mv(call), [](Impl::Call& done, Answer& answer) -> Outcome<Polled> {
        const channel::Body& body = answer.message.body;
        if (const auto* pending = std::get_if<channel::Pending>(&body))
          return Polled(Running{static_cast<std::uint64_t>(pending->elapsedMs)});
        if (const auto* result = std::get_if<channel::ExecResult>(&body))
          return Polled(finishedOf(*result, done.reception, answer.deliveries));
        if (const auto* file = std::get_if<channel::FileData>(&body))
          return Polled(StoredFile{static_cast<std::uint64_t>(file->size)});
        return Polled(StoredOk{});
      });
}

kj::Promise<Outcome<DiagReport>> GuestClient::diag(Id id, std::int64_t maxEntries,
                                                   channel::Budget budget) {
  const channel::Diag body{.maxEntries = maxEntries};
  if (const auto error = checkArguments(body)) return refuse<DiagReport>(*error);
  if (const auto error = checkBudget(budget)) return refuse<DiagReport>(*error);
  auto request = makeRequest({.id = id, .body = body});
  auto call = kj::heap<Impl::Call>(*impl, Operation::DIAG, std::move(std::get<Request>(request)),
                                   budget, id, channel::DEFAULT_BULK_CAP);
  call->reception.limitEntries(maxEntries);
  auto promise = call->run();
  return resultOf<DiagReport>(
      kj::mv(promise), kj::mv(call), [](Impl::Call&, Answer& answer) -> Outcome<DiagReport> {
        auto& result = std::get<channel::DiagResult>(answer.message.body);
        return DiagReport{.entries = std::move(result.entries),
                          .listenerRestarts = static_cast<std::uint64_t>(result.listenerRestarts)};
      });
}

const Trace& GuestClient::trace() const {
  return impl->line.trace;
}

kj::Maybe<Id> GuestClient::pinned() const {
  return impl->pinned;
}

}  // namespace cordon::parser
