// Looks at every RPC message of a connection, in both directions: counts calls, refuses what a
// two-party peer never sends, and takes the texts out of exceptions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <variant>

#include <capnp/message.h>
#include <capnp/rpc.capnp.h>
#include <kj/time.h>

#include "common/ipc/error.h"
#include "common/ipc/limits.h"

namespace cordon::ipc {

// The calls that a peer has made and that still cost something here.
class AnswerTable {
 public:
  // `limits` must outlive it.
  explicit AnswerTable(const PeerLimits& limits);

  // BAD_MESSAGE where the peer uses an id twice or finishes what it never asked; TOO_MANY_CALLS
  // over the limits.
  std::optional<ErrorCode> called(std::uint32_t id, kj::TimePoint now);
  std::optional<ErrorCode> finished(std::uint32_t id);
  // Our own side: an unknown id is a fault of ours and throws.
  void returned(std::uint32_t id);

  [[nodiscard]] std::size_t callsInFlight() const { return inFlight; }
  // Whether a call that is not returned came before `moment`.
  [[nodiscard]] bool hasCallBefore(kj::TimePoint moment) const;

 private:
  struct Answer {
    kj::TimePoint calledAt;
    bool returned = false;
    bool finished = false;
  };

  const PeerLimits& limits;
  std::map<std::uint32_t, Answer> answers;
  std::size_t inFlight = 0;
};

// The message may pass as it is.
struct Pass {};
// This is to take its place.
using Replacement = std::unique_ptr<capnp::MallocMessageBuilder>;
using Verdict = std::variant<Pass, Replacement, ErrorCode>;

// What the peer sent. Reading a malformed message may throw, like every reader of Cap'n Proto.
Verdict inspectInbound(capnp::rpc::Message::Reader message, AnswerTable& answers,
                       const PeerLimits& limits, kj::TimePoint now);
// What Cap'n Proto sends for us. Never an ErrorCode.
Verdict inspectOutbound(capnp::rpc::Message::Reader message, AnswerTable& answers);

}  // namespace cordon::ipc
