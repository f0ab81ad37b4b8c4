#include "services/parser/guest-channel.h"

#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <kj/debug.h>

#include "common/ipc/error.h"
#include "services/parser/guest-client.h"
#include "services/parser/guest-records.h"
#include "services/parser/open-poller.h"
#include "services/parser/requests.h"
#include "services/parser/results.h"
#include "services/parser/streams.h"

namespace cordon::parser {
namespace {

// HybridTransport remembers a wrong peer for itself; this remembers it for every channel to the
// guest.
class LatchedTransport final : public Transport {
 public:
  LatchedTransport(ParserState& sharedState, std::uint32_t guestCid, HybridAddress address)
      : state(sharedState),
        cid(guestCid),
        inner(state.io, state.timer, std::move(address), state.options.allowRootPeer) {}

  kj::Promise<Connection> connect() override {
    if (state.mismatched.contains(cid))
      return Connection(Tamper{.type = TamperClass::PEER_MISMATCH, .frame = {}});
    return inner.connect().then([this](Connection&& connection) {
      const auto* tamper = std::get_if<Tamper>(&connection);
      if (tamper != nullptr && tamper->type == TamperClass::PEER_MISMATCH)
        state.mismatched.insert(cid);
      return kj::mv(connection);
    });
  }

 private:
  ParserState& state;
  std::uint32_t cid;
  HybridTransport inner;
};

class VerdictRecord final : public VerdictLog {
 public:
  VerdictRecord(const log::Log& serviceLog, std::uint32_t guestCid)
      : log(serviceLog), cid(guestCid) {}

  void verdict(std::string_view operation, const channel::Id& id, const Failure& failure,
               bool swallowed, const std::vector<TraceEvent>& tail) override {
    const log::Log request = log.forRequest(channel::toHex(id));
    request.warn("channel.verdict", {{"cid", cid},
                                     {"operation", operation},
                                     {"verdict", parser::describe(failure)},
                                     {"deliveries", failure.deliveries},
                                     {"swallowed", swallowed}});
    for (const TraceEvent& event : tail)
      request.info("channel.trace", {{"cid", cid}, {"event", toText(event)}});
  }

 private:
  const log::Log& log;
  std::uint32_t cid;
};

// The client of one guest with all that it needs; lives as long as the channel and each of its
// operations.
class Guest final : public kj::Refcounted {
 public:
  Guest(kj::Own<ParserState> sharedState, std::uint32_t guestCid, HybridAddress address)
      : state(kj::mv(sharedState)),
        cid(guestCid),
        transport(*state, cid, std::move(address)),
        record(state->log, cid),
        client(transport, state->timer, state->ids, record, state->options.client) {
    ++state->channels;
  }
  ~Guest() noexcept(false) override { --state->channels; }
  KJ_DISALLOW_COPY(Guest);

  kj::Own<ParserState> state;
  std::uint32_t cid;
  LatchedTransport transport;
  VerdictRecord record;
  GuestClient client;
};

class OpenChannel final : public protocols::GuestChannel::Server {
 public:
  explicit OpenChannel(kj::Own<Guest> channelGuest) : guest(kj::mv(channelGuest)) {}

  kj::Promise<void> ping(PingContext context) override {
    return operate("ping", context,
                   [this](const PingCall& call) { return client().ping(call.id, call.budget); });
  }
  kj::Promise<void> pinSession(PinSessionContext context) override {
    return operate("pin-session", context, [this](const PingCall& call) {
      return client().pinSession(call.id, call.budget);
    });
  }
  kj::Promise<void> exec(ExecContext context) override {
    const auto params = context.getParams();
    auto output = kj::heap<RemoteSink>(params.getStdout());
    auto errors = kj::heap<RemoteSink>(params.getStderr());
    kj::Own<RemoteSource> input;
    if (params.hasStdin()) input = kj::heap<RemoteSource>(params.getStdin());
    return operate("exec", context, [&, this](ExecCall& call) {
      kj::Maybe<BulkSource&> stdinSource;
      if (input.get() != nullptr) stdinSource = *input;
      auto running = client().exec(call.id, std::move(call.request), stdinSource, *output, *errors);
      return running.attach(kj::mv(input), kj::mv(output), kj::mv(errors));
    });
  }
  kj::Promise<void> readFile(ReadFileContext context) override {
    auto content = kj::heap<RemoteSink>(context.getParams().getContent());
    return operate("read-file", context, [&, this](ReadCall& call) {
      auto running = client().readFile(call.id, std::move(call.request), *content);
      return running.attach(kj::mv(content));
    });
  }
  kj::Promise<void> writeFile(WriteFileContext context) override {
    auto content = kj::heap<RemoteSource>(context.getParams().getContent());
    return operate("write-file", context, [&, this](WriteCall& call) {
      auto running = client().writeFile(call.id, std::move(call.request), *content);
      return running.attach(kj::mv(content));
    });
  }
  kj::Promise<void> poll(PollContext context) override {
    return operate("poll", context, [this](const PollCall& call) {
      return client().poll(call.id, call.target, call.budget);
    });
  }
  kj::Promise<void> diag(DiagContext context) override {
    return operate("diag", context, [this](const DiagCall& call) {
      return client().diag(call.id, call.maxEntries, call.budget);
    });
  }
  kj::Promise<void> readJunit(ReadJunitContext context) override {
    auto sink = context.getParams().getCases();
    return read("read-junit", context, [&, this](ReadCall& call) {
      return parser::readJunit(client(), call.id, std::move(call.request), kj::mv(sink));
    });
  }
  kj::Promise<void> readVerdicts(ReadVerdictsContext context) override {
    auto sink = context.getParams().getVerdicts();
    return read("read-verdicts", context, [&, this](ReadCall& call) {
      return parser::readVerdicts(client(), call.id, std::move(call.request), kj::mv(sink));
    });
  }
  kj::Promise<void> pollCoverage(PollCoverageContext context) override {
    context.getResults().setPoller(openPoller(*guest->state, client(), kj::addRef(*guest),
                                              readPlan(context.getParams().getRequest())));
    return kj::READY_NOW;
  }

 private:
  // An operation that reads records: so many at once.
  template <typename Context, typename Start>
  kj::Promise<void> read(std::string_view kind, Context context, Start start) {
    ParserState& state = *guest->state;
    if (state.readings >= MAX_READINGS) return refuse(context, ArgumentError::TOO_MANY);
    return operate(kind, context, kj::mv(start)).attach(Ticket(state, &ParserState::readings));
  }

  GuestClient& client() { return guest->client; }

  // Checks the arguments, runs the operation, writes its result. Dropping the promise, which a
  // cancelled call does, drops the operation and so its connection.
  template <typename Context, typename Start>
  kj::Promise<void> operate(std::string_view kind, Context context, Start start) {
    context.allowCancellation();
    auto checked = readCall(context.getParams());
    ParserState& state = *guest->state;
    if (std::holds_alternative<ArgumentError>(checked)) {
      return refuse(context, std::get<ArgumentError>(checked));
    }
    if (state.operations >= MAX_OPERATIONS) return refuse(context, ArgumentError::TOO_MANY);
    auto& call = std::get<0>(checked);
    context.releaseParams();
    auto running = start(call);
    return running
        .then(
            [context, kind, id = call.id, self = kj::addRef(*guest),
             begin = state.timer.now()](auto&& outcome) mutable {
              self->state->log.forRequest(channel::toHex(id))
                  .info("operation.ended",
                        {{"cid", self->cid},
                         {"operation", kind},
                         {"result", summary(outcome)},
                         {"ms", (self->state->timer.now() - begin) / kj::MILLISECONDS}});
              writeResult(outcome, context.getResults().initResult());
            },
            [kind, id = call.id, self = kj::addRef(*guest)](kj::Exception&& exception) {
              const kj::StringPtr text = exception.getDescription();
              self->state->log.forRequest(channel::toHex(id))
                  .error("operation.fault",
                         {{"cid", self->cid},
                          {"operation", kind},
                          {"text", std::string_view(text.begin(), text.size())}});
              kj::throwFatalException(kj::mv(exception));
            })
        .attach(Ticket(state, &ParserState::operations), kj::addRef(*guest));
  }

  template <typename T>
  static std::string summary(const Outcome<T>& outcome) {
    const auto* failure = std::get_if<Failure>(&outcome);
    return failure == nullptr ? "ok" : parser::describe(*failure);
  }

  kj::Own<Guest> guest;
};
}  // namespace

protocols::GuestChannel::Client makeGuestChannel(kj::Own<ParserState> state, std::uint32_t cid,
                                                 HybridAddress address) {
  return kj::heap<OpenChannel>(kj::refcounted<Guest>(kj::mv(state), cid, std::move(address)));
}

RefusedChannel::RefusedChannel(ArgumentError reason) : error(reason) {}
kj::Promise<void> RefusedChannel::ping(PingContext context) {
  return refuse(context, error);
}
kj::Promise<void> RefusedChannel::pinSession(PinSessionContext context) {
  return refuse(context, error);
}
kj::Promise<void> RefusedChannel::exec(ExecContext context) {
  return refuse(context, error);
}
kj::Promise<void> RefusedChannel::readFile(ReadFileContext context) {
  return refuse(context, error);
}
kj::Promise<void> RefusedChannel::writeFile(WriteFileContext context) {
  return refuse(context, error);
}
kj::Promise<void> RefusedChannel::poll(PollContext context) {
  return refuse(context, error);
}
kj::Promise<void> RefusedChannel::diag(DiagContext context) {
  return refuse(context, error);
}
kj::Promise<void> RefusedChannel::readJunit(ReadJunitContext context) {
  return refuse(context, error);
}
kj::Promise<void> RefusedChannel::readVerdicts(ReadVerdictsContext context) {
  return refuse(context, error);
}
kj::Promise<void> RefusedChannel::pollCoverage(PollCoverageContext context) {
  context.getResults().setPoller(refusedPoller(error));
  return kj::READY_NOW;
}

}  // namespace cordon::parser
