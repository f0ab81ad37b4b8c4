// One guest's channel as a capability.
#pragma once

#include <cstdint>

#include "protocols/parser.capnp.h"
#include "services/parser/hybrid-dial.h"
#include "services/parser/outcome.h"
#include "services/parser/parser-state.h"

namespace cordon::parser {

// `address` is dialable.
protocols::GuestChannel::Client makeGuestChannel(kj::Own<ParserState> state, std::uint32_t cid,
                                                 HybridAddress address);

// A channel that was not opened: every operation ends as `error`.
class RefusedChannel final : public protocols::GuestChannel::Server {
 public:
  explicit RefusedChannel(ArgumentError error);
  kj::Promise<void> ping(PingContext context) override;
  kj::Promise<void> pinSession(PinSessionContext context) override;
  kj::Promise<void> exec(ExecContext context) override;
  kj::Promise<void> readFile(ReadFileContext context) override;
  kj::Promise<void> writeFile(WriteFileContext context) override;
  kj::Promise<void> poll(PollContext context) override;
  kj::Promise<void> diag(DiagContext context) override;
  kj::Promise<void> readJunit(ReadJunitContext context) override;
  kj::Promise<void> readVerdicts(ReadVerdictsContext context) override;
  kj::Promise<void> pollCoverage(PollCoverageContext context) override;

 private:
  ArgumentError error;
};
}  // namespace cordon::parser
