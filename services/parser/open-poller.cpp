#include "services/parser/open-poller.h"

#include <utility>
#include <variant>

#include "services/parser/record-results.h"
#include "services/parser/results.h"

namespace cordon::parser {
namespace {

class OpenPoller final : public protocols::CoveragePoller::Server {
 public:
  OpenPoller(ParserState& state, GuestClient& client, kj::Own<kj::Refcounted> clientsOwner,
             CoveragePlan plan)
      : keep(kj::mv(clientsOwner)),
        ticket(state, &ParserState::pollers),
        poller(client, state.timer, state.options.wallClock, state.ids, std::move(plan)) {}

  kj::Promise<void> report(ReportContext context) override {
    context.allowCancellation();
    const auto window = readWindow(context.getParams().getWindow());
    if (!window) return refuse(context, ArgumentError::BAD_WINDOW);
    return poller.report(window->bounds).then([context](CoverageAnswer&& answer) mutable {
      writeResult(answer, context.getResults().initResult());
    });
  }

 private:
  kj::Own<kj::Refcounted> keep;
  Ticket ticket;
  CoveragePoller poller;
};

class RefusedPoller final : public protocols::CoveragePoller::Server {
 public:
  explicit RefusedPoller(ArgumentError reason) : error(reason) {}

  kj::Promise<void> report(ReportContext context) override { return refuse(context, error); }

 private:
  ArgumentError error;
};

}  // namespace

protocols::CoveragePoller::Client openPoller(ParserState& state, GuestClient& client,
                                             kj::Own<kj::Refcounted> keep,
                                             Checked<CoveragePlan> plan) {
  if (const auto* error = std::get_if<ArgumentError>(&plan)) return refusedPoller(*error);
  if (state.pollers >= MAX_POLLERS) return refusedPoller(ArgumentError::TOO_MANY);
  return kj::heap<OpenPoller>(state, client, kj::mv(keep), std::get<CoveragePlan>(std::move(plan)));
}

protocols::CoveragePoller::Client refusedPoller(ArgumentError error) {
  return kj::heap<RefusedPoller>(error);
}

}  // namespace cordon::parser
