// The errors that may cross an RPC connection: a code, nothing else.
//
// Cap'n Proto 0.9.2 sends the text of an exception to the peer, with every KJ_CONTEXT line: files,
// lines and argument values. RpcPeer replaces each exception, in both directions, by one whose text
// is "cordon:<code>" (inspect.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <kj/exception.h>

namespace cordon::ipc {

enum class ErrorCode : std::uint8_t {
  INTERNAL,           // any exception that has no code of its own: a fault on the side that says it
  OVERLOADED,         // a bound of the service, as against one of the connection, is reached
  DISCONNECTED,       // the connection ended, or is over
  UNIMPLEMENTED,      // no such method or interface there
  DEADLINE,           // a call took longer than the connection allows
  BAD_MESSAGE,        // not a Cap'n Proto RPC message, or one that no honest two-party peer sends
  MESSAGE_TOO_LARGE,  // over the size or the segment count of the connection
  TOO_MANY_CALLS,     // more calls in flight, or answers not finished, than the connection allows
  STALLED_PEER,       // what is queued for the peer does not drain, or a message of it does not end
  PEER_REFUSED,       // the uid of the peer is not one that may connect
  TOO_MANY_CONNECTIONS,  // the listener is full
  BAD_ARGUMENT,  // a value over the bounds of its protocol, where the protocol has no result for it
  CANCELLED,     // given up by the side that says it: it shuts down
};

// "internal", "bad-message", …
std::string_view name(ErrorCode code);

// The exception that stands for `code`: its description is "cordon:<name>".
kj::Exception makeException(ErrorCode code);

// The code of an exception, local or from a peer; INTERNAL, OVERLOADED, DISCONNECTED or
// UNIMPLEMENTED by its type where it carries none.
ErrorCode codeOf(const kj::Exception& exception);

// The code in the text of an exception: "cordon:<name>" alone or before a line break (behind which
// KJ puts contexts), with or without what Cap'n Proto puts before what came from a peer.
std::optional<ErrorCode> parseCode(std::string_view text);

}  // namespace cordon::ipc
