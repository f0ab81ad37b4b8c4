// A poller of one guest's telemetry sources as a capability.
#pragma once

#include <kj/refcount.h>

#include "protocols/parser.capnp.h"
#include "services/parser/coverage-poller.h"
#include "services/parser/guest-client.h"
#include "services/parser/parser-state.h"
#include "services/parser/requests.h"

namespace cordon::parser {

// `keep` holds what `client` is part of. A plan that is none, or one poller too many, gives a
// poller whose every report is that failure.
protocols::CoveragePoller::Client openPoller(ParserState& state, GuestClient& client,
                                             kj::Own<kj::Refcounted> keep,
                                             Checked<CoveragePlan> plan);
protocols::CoveragePoller::Client refusedPoller(ArgumentError error);

}  // namespace cordon::parser
