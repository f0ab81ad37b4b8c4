// The twenty message kinds of the guest channel as types. Source: protocols/channel.md §5 and §6.
//
// A value of these types is not yet legal: bounds and cross rules are checked by decode (decoder.h)
// and by encode (encoder.h), with the same code. Text is UTF-8 without NUL. Fields with a default
// on the wire carry it here.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/channel/limits.h"

namespace cordon::channel {

// 32 lower-case hex digits on the wire: request ids, sessions, forward handles.
struct Id {
  std::array<std::uint8_t, 16> bytes{};
  auto operator<=>(const Id&) const = default;
};
std::string toHex(const Id& id);
// Nothing unless `text` is exactly 32 characters of 0-9a-f.
std::optional<Id> idFromHex(std::string_view text);

// 64 lower-case hex digits on the wire.
using Sha256 = std::array<std::uint8_t, 32>;
std::string toHex(const Sha256& digest);
std::optional<Sha256> sha256FromHex(std::string_view text);

enum class BudgetLayer : std::uint8_t { COMMAND, CHANNEL, UNTIMED, TRANSPORT };
enum class GuestState : std::uint8_t { PENDING, BOOTING, READY, FAILED };
enum class Stage : std::uint8_t { FETCH, CONSTRUCT, BOOT, VERIFY, READY, FAILED };
enum class DiagLevel : std::uint8_t { INFO, WARN, ERROR };

struct Budget {
  std::optional<std::int64_t> commandMs{};  // 1..MAX_COMMAND_MS, at most untimedBoundMs
  std::optional<std::int64_t> channelMs{};  // 1..MAX_WIRE_INTEGER
  std::int64_t untimedBoundMs = DEFAULT_UNTIMED_BOUND_MS;  // 1..MAX_WIRE_INTEGER
  bool operator==(const Budget&) const = default;
};

// ---- requests to a guest ----

struct Ping {
  bool operator==(const Ping&) const = default;
};
struct Exec {
  std::vector<std::string> cmd{};  // at least one element; argv, never a shell line
  std::optional<std::string> cwd{};
  std::map<std::string, std::string> env{};
  std::optional<std::string> user{};
  Budget budget{};
  std::optional<std::int64_t> dataSize{};  // absent: no stdin at all; 0: an empty one
  bool operator==(const Exec&) const = default;
};
struct ReadFile {
  std::string path{};                      // not empty
  std::optional<std::int64_t> maxBytes{};  // 0..MAX_DECLARED_BULK
  Budget budget{};
  bool operator==(const ReadFile&) const = default;
};
struct WriteFile {
  std::string path{};                  // not empty
  std::optional<std::int64_t> mode{};  // 0..MAX_FILE_MODE; absent: 0644 less the umask
  Budget budget{};
  std::int64_t dataSize = 0;
  bool operator==(const WriteFile&) const = default;
};
struct Forward {
  std::string host{};     // not empty
  std::int64_t port = 0;  // 1..65535
  Budget budget{};
  bool operator==(const Forward&) const = default;
};
struct Poll {
  Id targetId{};
  bool operator==(const Poll&) const = default;
};
struct Ack {
  Id targetId{};
  bool operator==(const Ack&) const = default;
};
struct Diag {
  std::int64_t maxEntries = DEFAULT_DIAG_ENTRIES;  // 1..MAX_DIAG_ENTRIES
  bool operator==(const Diag&) const = default;
};

// ---- replies of a guest ----

struct Pong {
  std::string daemon{};  // at most MAX_DAEMON_LENGTH
  std::int64_t protocol = PROTOCOL_VERSION;
  Id session{};
  bool operator==(const Pong&) const = default;
};
struct ExecResult {
  std::int64_t rc = 0;  // a signed 32-bit number; killed by signal N: -N
  std::int64_t stdoutSize = 0;
  std::int64_t stderrSize = 0;  // stdoutSize + stderrSize == dataSize, absent counting as 0
  bool stdoutTruncated = false;
  bool stderrTruncated = false;
  std::optional<std::int64_t> dataSize{};
  bool operator==(const ExecResult&) const = default;
};
struct FileData {
  std::int64_t size = 0;  // == dataSize, absent counting as 0
  bool truncated = false;
  std::optional<std::int64_t> dataSize{};
  bool operator==(const FileData&) const = default;
};
struct Ok {
  bool operator==(const Ok&) const = default;
};
struct Pending {
  Id targetId{};
  std::int64_t elapsedMs = 0;
  bool operator==(const Pending&) const = default;
};
struct ForwardOk {
  Id handle{};
  bool operator==(const ForwardOk&) const = default;
};
struct DiagEntry {
  std::int64_t tsMs = 0;  // since the start of the agent
  DiagLevel level = DiagLevel::INFO;
  std::string event{};                     // 1..MAX_DIAG_EVENT_LENGTH
  std::optional<std::string> requestId{};  // free text, at most MAX_DIAG_REQUEST_ID_LENGTH
  std::string detail{};                    // at most MAX_DIAG_DETAIL_LENGTH
  bool operator==(const DiagEntry&) const = default;
};
struct DiagResult {
  std::vector<DiagEntry> entries{};  // at most MAX_DIAG_ENTRIES
  std::int64_t listenerRestarts = 0;
  bool operator==(const DiagResult&) const = default;
};
struct Error {
  std::string errnoName{};               // ^[A-Z][A-Z0-9]{1,15}$
  std::string message{};                 // at most MAX_MESSAGE_LENGTH
  std::optional<BudgetLayer> layer{};    // required with ETIME and ETIMEDOUT
  std::optional<std::string> partial{};  // legal only with those two; at most MAX_PARTIAL_LENGTH
  bool operator==(const Error&) const = default;
};

// ---- host plane ----

struct Realize {
  Sha256 bundleDigest{};
  std::vector<std::string> grants{};  // at most MAX_GRANTS
  bool operator==(const Realize&) const = default;
};
struct Teardown {
  bool operator==(const Teardown&) const = default;
};
struct StageReport {
  Stage stage = Stage::FETCH;
  std::string detail{};  // at most MAX_STAGE_DETAIL_LENGTH
  std::map<std::string, GuestState> guests{};
  bool operator==(const StageReport&) const = default;
};
struct Heartbeat {
  std::int64_t uptimeMs = 0;
  std::map<std::string, GuestState> guests{};
  bool operator==(const Heartbeat&) const = default;
};

using Body = std::variant<Ping, Exec, ReadFile, WriteFile, Forward, Poll, Ack, Diag, Pong,
                          ExecResult, FileData, Ok, Pending, ForwardOk, DiagResult, Error, Realize,
                          Teardown, StageReport, Heartbeat>;

struct Message {
  Id id{};
  Body body;

  // The bulk this message announces: absent where it carries none.
  [[nodiscard]] std::optional<std::int64_t> dataSize() const;
  // "ping", "exec", …: the wire's word for the kind.
  [[nodiscard]] std::string_view kind() const;
  bool operator==(const Message&) const = default;
};

}  // namespace cordon::channel
