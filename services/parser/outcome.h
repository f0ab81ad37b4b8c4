// What an operation on a guest can end with. Source: channel.md §8.7 and §12; one to one the
// results of protocols/parser.capnp, whose enumerators stand in the same order.
//
// All that a guest can do is a value of these types. A KJ exception out of the client means a bug
// or a failing host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/channel/message.h"

namespace cordon::parser {

enum class TamperClass : std::uint8_t {
  FRAME_TOO_LARGE,
  PROTOCOL_VIOLATION,
  INVALID_MESSAGE,
  BULK_OVERRUN,
  BULK_MISMATCH,
  WRONG_ID,
  WRONG_KIND,
  TRAILING_DATA,   // bytes behind the reply, at once or late
  PEER_MISMATCH,   // SO_PEERCRED is not the planned uid; the guest is not dialled again
  HANDSHAKE,       // the hybrid socket answered CONNECT with something else than OK <port>
  FOREIGN_LAYER,   // an error with a budget layer other than `command`
  REPLAY_DIFFERS,  // a reply sent again is not the reply sent before
};
std::string_view name(TamperClass value);

// A reply that no correct guest sends: never retried, never to be read as "unavailable".
struct Tamper {
  TamperClass type = TamperClass::PROTOCOL_VIOLATION;
  // SHA-256 of the offending frame or bytes; absent where there are none (PEER_MISMATCH).
  std::optional<channel::Sha256> frame = std::nullopt;
  bool operator==(const Tamper&) const = default;
};

enum class LossClass : std::uint8_t {
  UNREACHABLE,  // never left: each dial failed
  REPLY_LOST,   // all attempts used
  STALE,        // ESTALE: it ran, its result is gone; never resend
  UNKNOWN_ID,   // ENOENT to a poll: delivery cannot be ruled out, so it is not resent
  UNCERTIFIED,  // it succeeded after a resend, but the guest did not answer the session check
};
std::string_view name(LossClass value);

struct BudgetFailure {
  channel::BudgetLayer layer = channel::BudgetLayer::CHANNEL;  // never TRANSPORT
  std::string partial;  // tail of the killed command's output, of the guest's choosing; empty but
                        // for COMMAND
  bool operator==(const BudgetFailure&) const = default;
};

struct GuestError {
  std::string errnoName;  // ^[A-Z][A-Z0-9]{1,15}$
  std::string message;    // at most MAX_MESSAGE_LENGTH code points, of the guest's choosing
  bool operator==(const GuestError&) const = default;
};

// The file is longer than maxBytes; `written` bytes went to the sink.
struct FileLimit {
  std::uint64_t written = 0;
  bool operator==(const FileLimit&) const = default;
};

struct SessionChange {
  channel::Id pinned;  // what the operation started under
  channel::Id found;   // pinned from now on
  bool operator==(const SessionChange&) const = default;
};

// Refused here, before anything was sent. BAD_ID and BAD_ADDRESS are for the service above; the
// client never makes them.
enum class ArgumentError : std::uint8_t {
  BAD_ID,
  BAD_TEXT,  // NUL, not UTF-8, empty where it must not be, over its length
  BAD_BUDGET,
  BAD_ADDRESS,
  REQUEST_TOO_LARGE,  // the control frame would exceed 32768 bytes
  BULK_TOO_LARGE,
  BAD_MODE,
  TOO_MANY,  // argv or env entries, or (service) operations, channels, pollers, sources
  BAD_WINDOW,
};
std::string_view name(ArgumentError value);

// The caller's BulkSource or BulkSink failed or broke its contract; the guest is not to blame.
enum class StreamError : std::uint8_t {
  SOURCE_SHORT,    // fewer or more bytes than asked for
  SOURCE_CHANGED,  // other bytes when asked again
  FAILED,          // its promise was rejected
};
std::string_view name(StreamError value);

struct Failure {
  // How often the request was really sent: a failed dial does not count, a lost reply and an
  // expired window do.
  std::uint32_t deliveries = 0;
  std::variant<Tamper, LossClass, BudgetFailure, GuestError, FileLimit, SessionChange,
               ArgumentError, StreamError>
      reason;
  bool operator==(const Failure&) const = default;
};

// For logs and tests: "tamper wrong-id", "loss stale", "budget channel", "guest ENOENT", … never a
// text of the guest's but an errno name, which has a legal shape.
std::string describe(const Failure& failure);

template <typename T>
using Outcome = std::variant<T, Failure>;

struct Pong {
  std::string daemon;
  channel::Id session;
  bool operator==(const Pong&) const = default;
};
struct Finished {
  std::int32_t rc = 0;
  std::uint64_t stdoutSize = 0;
  std::uint64_t stderrSize = 0;
  bool stdoutTruncated = false;
  bool stderrTruncated = false;
  channel::Sha256
      stdoutSha256{};  // of what was handed to the sinks (poll: of what was read and dropped)
  channel::Sha256 stderrSha256{};
  std::uint32_t deliveries = 0;
  bool operator==(const Finished&) const = default;
};
struct Content {
  std::uint64_t size = 0;
  channel::Sha256 sha256{};
  std::uint32_t deliveries = 0;
  bool operator==(const Content&) const = default;
};
struct Written {
  channel::Sha256 sha256{};  // of the bytes sent
  std::uint32_t deliveries = 0;
  bool operator==(const Written&) const = default;
};

// What became of an earlier request.
struct Running {
  std::uint64_t elapsedMs = 0;  // as the guest says
  bool operator==(const Running&) const = default;
};
struct StoredFile {
  std::uint64_t size = 0;
  bool operator==(const StoredFile&) const = default;
};
struct StoredOk {
  bool operator==(const StoredOk&) const = default;
};
using Polled = std::variant<Running, Finished, StoredFile, StoredOk>;

struct DiagReport {
  std::vector<channel::DiagEntry> entries;
  std::uint64_t listenerRestarts = 0;
  bool operator==(const DiagReport&) const = default;
};

}  // namespace cordon::parser
