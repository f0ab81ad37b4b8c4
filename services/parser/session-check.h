// When an operation's outcome must be certified by a fresh session of the guest. Source: host.md
// §13, with the one layer of retries that there is here: "delivered more than once" stands for
// "re-delivered".
#pragma once

#include <cstdint>

#include "services/parser/outcome.h"
#include "services/parser/reception.h"

namespace cordon::parser {

enum class SessionCheck : std::uint8_t {
  NONE,
  BEST_EFFORT,  // an outcome is in hand that is bad already: only a changed session or tamper
                // outranks it
  CERTIFY,      // success is in hand, and holds only if the session is the pinned one
};

// failure: null for success.
SessionCheck checkFor(Operation operation, std::uint32_t deliveries, const Failure* failure);

}  // namespace cordon::parser
