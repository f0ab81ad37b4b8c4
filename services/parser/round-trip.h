// One request and its one reply over a connection of their own. Source: channel.md §8.1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include <kj/async.h>
#include <kj/timer.h>

#include "common/channel/message.h"
#include "services/parser/bulk.h"
#include "services/parser/digest.h"
#include "services/parser/outcome.h"
#include "services/parser/reception.h"
#include "services/parser/trace.h"
#include "services/parser/transport.h"
#include "services/parser/window.h"

namespace cordon::parser {

// A request as it is sent, as often as need be, with the same bytes.
struct Request {
  channel::Id id;
  std::string_view kind;
  std::string control;  // the CONTROL frame
  // Bulk follows the control frame exactly where `size` has a value; of size 0 it needs no source.
  std::optional<std::uint64_t> size;
  kj::Maybe<BulkSource&> source;
  ReplayCheck sent;  // what the source gave so far
  bool isPoll = false;
};

struct NotSent {};  // the dial failed
struct Lost {};     // the connection ended before the whole reply was read and EOF seen behind it
struct Expired {};  // the window ran out, wherever that was
struct RoundTripEnd {
  std::variant<channel::Message, NotSent, Lost, Expired, Tamper, StreamError> what;
  // Counts as a delivery (channel.md §8.5).
  bool delivered = false;
};

// Everything passed in must outlive the promise; dropping it closes the connection.
kj::Promise<RoundTripEnd> roundTrip(Transport& transport, kj::Timer& timer, Trace& trace,
                                    Request& request, Reception& reception, Window& window);

}  // namespace cordon::parser
