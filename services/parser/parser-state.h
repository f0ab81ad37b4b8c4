// What the connections and channels of one parser share.
#pragma once

#include <set>
#include <utility>

#include <kj/async-io.h>
#include <kj/refcount.h>
#include <kj/timer.h>

#include "services/parser/parser-service.h"

namespace cordon::parser {

class ParserState final : public kj::Refcounted {
 public:
  ParserState(kj::LowLevelAsyncIoProvider& provider, kj::Timer& clock, IdSource& idSource,
              const log::Log& serviceLog, ServiceOptions serviceOptions)
      : io(provider),
        timer(clock),
        ids(idSource),
        log(serviceLog),
        options(std::move(serviceOptions)) {}

  kj::LowLevelAsyncIoProvider& io;
  kj::Timer& timer;
  IdSource& ids;
  const log::Log& log;
  const ServiceOptions options;

  std::size_t channels = 0;
  std::size_t operations = 0;
  std::size_t readings = 0;  // of files of records
  std::size_t pollers = 0;
  // CIDs whose socket was once held by another uid than planned. Never dialled again: who could put
  // a socket there once can do so between two checks.
  std::set<std::uint32_t> mismatched;
};

// Counts something for as long as it runs.
class Ticket {
 public:
  Ticket(ParserState& sharedState, std::size_t ParserState::*which)
      : state(kj::addRef(sharedState)), count(which) {
    ++(state.get()->*count);
  }
  ~Ticket() noexcept(false) {
    if (state.get() != nullptr) --(state.get()->*count);
  }
  Ticket(Ticket&&) = default;
  Ticket& operator=(Ticket&&) = delete;

 private:
  kj::Own<ParserState> state;
  std::size_t ParserState::*count;
};

}  // namespace cordon::parser
