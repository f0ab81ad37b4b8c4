// From what the channel client ends with to the results of protocols/parser.capnp, one to one.
#pragma once

#include "common/records/junit/junit.h"
#include "common/records/verdicts/verdicts.h"
#include "protocols/parser.capnp.h"
#include "services/parser/coverage-poller.h"
#include "services/parser/outcome.h"

namespace cordon::parser {

void writeFailure(const Failure& failure, protocols::Failure::Builder to);

// Ends a call by a failure of its arguments.
template <typename Context>
kj::Promise<void> refuse(Context context, ArgumentError error) {
  writeFailure(Failure{.deliveries = 0, .reason = error},
               context.getResults().initResult().initFailure());
  return kj::READY_NOW;
}

void writeResult(const Outcome<Pong>& outcome, protocols::PingResult::Builder to);
void writeResult(const Outcome<Finished>& outcome, protocols::ExecResult::Builder to);
void writeResult(const Outcome<Content>& outcome, protocols::ReadResult::Builder to);
void writeResult(const Outcome<Written>& outcome, protocols::WriteResult::Builder to);
void writeResult(const Outcome<Polled>& outcome, protocols::PollResult::Builder to);
void writeResult(const Outcome<records::JunitReport>& outcome, protocols::JunitResult::Builder to);
void writeResult(const Outcome<records::VerdictsReport>& outcome,
                 protocols::VerdictsResult::Builder to);
void writeResult(const CoverageAnswer& answer, protocols::CoverageResult::Builder to);
void writeResult(const Outcome<DiagReport>& outcome, protocols::DiagResult::Builder to);

}  // namespace cordon::parser
