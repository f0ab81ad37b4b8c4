// From the arguments of protocols/parser.capnp to the types of the channel client, with every bound
// that stands in the comments there and that a type of Cap'n Proto cannot say. What the client
// checks itself (arguments.h) is left to it.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "common/channel/message.h"
#include "protocols/parser.capnp.h"
#include "services/parser/coverage-poller.h"
#include "services/parser/hybrid-dial.h"
#include "services/parser/outcome.h"

namespace cordon::parser {

template <typename T>
using Checked = std::variant<T, ArgumentError>;

struct PingCall {
  channel::Id id;
  channel::Budget budget;
};
struct ExecCall {
  channel::Id id;
  channel::Exec request;
};
struct ReadCall {
  channel::Id id;
  channel::ReadFile request;
};
struct WriteCall {
  channel::Id id;
  channel::WriteFile request;
};
struct PollCall {
  channel::Id id;
  channel::Id target;
  channel::Budget budget;
};
struct DiagCall {
  channel::Id id;
  std::int64_t maxEntries = 0;
  channel::Budget budget;
};

Checked<PingCall> readCall(protocols::GuestChannel::PingParams::Reader params);
Checked<PingCall> readCall(protocols::GuestChannel::PinSessionParams::Reader params);
Checked<ExecCall> readCall(protocols::GuestChannel::ExecParams::Reader params);
Checked<ReadCall> readCall(protocols::GuestChannel::ReadFileParams::Reader params);
Checked<ReadCall> readCall(protocols::GuestChannel::ReadJunitParams::Reader params);
Checked<ReadCall> readCall(protocols::GuestChannel::ReadVerdictsParams::Reader params);
Checked<WriteCall> readCall(protocols::GuestChannel::WriteFileParams::Reader params);
Checked<PollCall> readCall(protocols::GuestChannel::PollParams::Reader params);
Checked<DiagCall> readCall(protocols::GuestChannel::DiagParams::Reader params);

Checked<CoveragePlan> readPlan(protocols::CoveragePoll::Reader request);

// The socket of a guest below `socketsDirectory`; nothing for an address that is not dialled, here
// or ever.
std::optional<HybridAddress> readAddress(protocols::GuestAddress::Reader address,
                                         std::string_view socketsDirectory, bool allowRootPeer);

}  // namespace cordon::parser
