#include "services/parser/coverage-poller.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/records/coverage/coverage-ledger.h"

namespace cordon::parser {
namespace {

// Questions at once. Each may hold MAX_NEWS.
constexpr std::size_t LANES = 4;

bool isVoid(records::Status status) {
  return status == records::Status::UNPARSABLE || status == records::Status::REFUSED;
}

// Adds what is said of one source to what is said of all.
void merge(records::CoverageReport& from, records::CoverageReport& into, std::size_t& gapsLeft) {
  if (isVoid(from.status) ? !isVoid(into.status) : into.status == records::Status::EMPTY) {
    into.status = from.status;
    into.reason = from.reason;
    into.line = from.line;
  }
  into.answer = std::max(into.answer, from.answer);
  into.findings.add(from.findings);
  into.truncated = into.truncated || from.truncated;
  for (records::SourceCoverage& source : from.sources) {
    if (source.gaps.size() > gapsLeft) {
      source.gaps.resize(gapsLeft);
      into.truncated = true;
    }
    gapsLeft -= source.gaps.size();
    into.sources.push_back(std::move(source));
  }
}

}  // namespace

CoveragePoller::CoveragePoller(GuestClient& guestClient, kj::Timer& clock, const kj::Clock& wall,
                               IdSource& idSource, CoveragePlan coveragePlan)
    : client(guestClient),
      timer(clock),
      wallClock(wall),
      ids(idSource),
      plan(std::move(coveragePlan)) {
  const Moment begin = now();
  for (const CoveragePlan::Source& source : plan.sources)
    sources.emplace_back(source.name, plan.silence, unevenRecords, begin);
  life = run().eagerlyEvaluate([this](kj::Exception&& exception) { fail(kj::mv(exception)); });
}

kj::Promise<CoverageAnswer> CoveragePoller::report(std::optional<records::Window> asked) {
  KJ_IF_MAYBE (exception, fault) return kj::cp(*exception);
  auto done = kj::newPromiseAndFulfiller<void>();
  waiters.push_back({.round = rounds + 1, .fulfiller = kj::mv(done.fulfiller)});
  KJ_IF_MAYBE (fulfiller, resting) (*fulfiller)->fulfill();
  return done.promise.then([this, asked]() { return answer(asked); });
}

kj::Promise<void> CoveragePoller::run() {
  ++rounds;
  return askRound().then([this]() { return rest(); }).then([this]() { return run(); });
}

kj::Promise<void> CoveragePoller::rest() {
  release();
  if (!waiters.empty()) return kj::READY_NOW;
  auto woken = kj::newPromiseAndFulfiller<void>();
  resting = kj::mv(woken.fulfiller);
  return timer.afterDelay(plan.interval).exclusiveJoin(kj::mv(woken.promise)).then([this]() {
    resting = nullptr;
  });
}

// Lets those go whose round has ended.
void CoveragePoller::release() {
  const auto later =
      std::stable_partition(waiters.begin(), waiters.end(),
                            [this](const Waiter& waiter) { return waiter.round <= rounds; });
  std::vector<Waiter> done(std::make_move_iterator(waiters.begin()),
                           std::make_move_iterator(later));
  waiters.erase(waiters.begin(), later);
  for (Waiter& waiter : done) waiter.fulfiller->fulfill();
}

void CoveragePoller::fail(kj::Exception&& exception) {
  for (Waiter& waiter : waiters) waiter.fulfiller->reject(kj::cp(exception));
  waiters.clear();
  fault = kj::mv(exception);
}

kj::Promise<void> CoveragePoller::askRound() {
  nextSource = 0;
  auto lanes = kj::heapArrayBuilder<kj::Promise<void>>(LANES);
  for (std::size_t i = 0; i < LANES; ++i) lanes.add(askNext());
  return kj::joinPromises(lanes.finish());
}

kj::Promise<void> CoveragePoller::askNext() {
  if (nextSource == sources.size()) return kj::READY_NOW;
  return ask(nextSource++).then([this]() { return askNext(); });
}

kj::Promise<void> CoveragePoller::ask(std::size_t index) {
  PolledSource& source = sources[index];
  if (!source.isOpen()) return kj::READY_NOW;
  source.countQuestion();
  auto content = kj::heap<PolledSource::Answer>(source);
  auto question = client.readFile(ids.next(),
                                  {.path = plan.sources[index].path,
                                   .maxBytes = static_cast<std::int64_t>(MAX_WATERMARK_FILE),
                                   .budget = plan.budget},
                                  *content);
  return question.then([this, index, content = kj::mv(content)](
                           Outcome<Content>&& outcome) mutable -> kj::Promise<void> {
    if (sources[index].conclude(*content, outcome, now())) return ask(index);
    return kj::READY_NOW;
  });
}

Moment CoveragePoller::now() const {
  return {.monotonic = timer.now(),
          .wallMs = (wallClock.now() - kj::UNIX_EPOCH) / kj::MILLISECONDS};
}

CoverageAnswer CoveragePoller::answer(const std::optional<records::Window>& asked) const {
  CoverageAnswer result;
  result.coverage.answer = records::Coverage::COMPLETE;
  const Moment moment = now();
  std::size_t gapsLeft = records::MAX_GAPS;
  for (const PolledSource& source : sources) {
    records::CoverageReport judged = source.judge(asked, moment);
    merge(judged, result.coverage, gapsLeft);
    result.polled.push_back(source.pollAt(moment));
  }
  return result;
}

}  // namespace cordon::parser
