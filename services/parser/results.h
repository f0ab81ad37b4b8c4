// From what the channel client ends with to the results of protocols/parser.capnp, one to one.
#pragma once

#include "protocols/parser.capnp.h"
#include "services/parser/outcome.h"

namespace cordon::parser {

void writeFailure(const Failure& failure, protocols::Failure::Builder to);

void writeResult(const Outcome<Pong>& outcome, protocols::PingResult::Builder to);
void writeResult(const Outcome<Finished>& outcome, protocols::ExecResult::Builder to);
void writeResult(const Outcome<Content>& outcome, protocols::ReadResult::Builder to);
void writeResult(const Outcome<Written>& outcome, protocols::WriteResult::Builder to);
void writeResult(const Outcome<Polled>& outcome, protocols::PollResult::Builder to);
void writeResult(const Outcome<DiagReport>& outcome, protocols::DiagResult::Builder to);

}  // namespace cordon::parser
