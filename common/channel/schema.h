// What each kind looks like on the wire: one table a kind. The reader, the writer and the check of
// bounds all follow these tables, so a field or a kind is added here and nowhere else. Source:
// protocols/channel.md §5 and §6. Internal to cordon-channel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "common/channel/message.h"

namespace cordon::channel {

// Bounds of a value; which one a field takes follows from its C++ type.
struct Range {
  std::int64_t min;
  std::int64_t max;
};
struct Length {  // code points
  std::size_t min = 0;
  std::size_t max = std::numeric_limits<std::size_t>::max();
};
struct Count {  // elements
  std::size_t min = 0;
  std::size_t max = std::numeric_limits<std::size_t>::max();
};
struct ErrnoShape {};
struct Unbounded {};  // the type is bound enough

template <class Struct, class Member, class Bounds>
struct Field {
  using Type = Member;
  std::string_view name;
  Member Struct::*member;
  Bounds bounds;
  bool required;
};

template <class T>
inline constexpr bool IS_OPTIONAL = false;
template <class T>
inline constexpr bool IS_OPTIONAL<std::optional<T>> = true;

// Must be there.
template <class S, class M, class B = Unbounded>
constexpr Field<S, M, B> required(std::string_view name, M S::*member, B bounds = {}) {
  static_assert(!IS_OPTIONAL<M>);
  return {name, member, bounds, true};
}
// May be absent when read; the struct's own initialiser is the default; always written.
template <class S, class M, class B = Unbounded>
constexpr Field<S, M, B> defaulted(std::string_view name, M S::*member, B bounds = {}) {
  static_assert(!IS_OPTIONAL<M>);
  return {name, member, bounds, false};
}
// May be absent; written only where it has a value.
template <class S, class M, class B = Unbounded>
constexpr Field<S, M, B> omittable(std::string_view name, M S::*member, B bounds = {}) {
  static_assert(IS_OPTIONAL<M>);
  return {name, member, bounds, false};
}

inline constexpr Range BULK_SIZE{0, MAX_DECLARED_BULK};
inline constexpr Range WIRE_INTEGER{0, MAX_WIRE_INTEGER};
inline constexpr Range WIRE_DURATION{1, MAX_WIRE_INTEGER};
inline constexpr Length NOT_EMPTY{1};

// Enumerations: the wire's words in the order of the enumerators.
template <class Enum>
inline constexpr auto WORDS = nullptr;
template <>
inline constexpr auto WORDS<BudgetLayer> =
    std::to_array<std::string_view>({"command", "channel", "untimed", "transport"});
template <>
inline constexpr auto WORDS<GuestState> = std::to_array<std::string_view>({"pending", "booting",
                                                                           "ready", "failed"});
template <>
inline constexpr auto WORDS<Stage> = std::to_array<std::string_view>({"fetch", "construct", "boot",
                                                                      "verify", "ready", "failed"});
template <>
inline constexpr auto WORDS<DiagLevel> = std::to_array<std::string_view>({"info", "warn", "error"});

// The payload of an END frame.
struct End {
  Sha256 sha256{};
  std::int64_t size = 0;
};

// The fields of a struct, sorted by name (the order in which they are written; checked below). A
// kind has its wire word as KIND and shares id, kind and v with all others.
template <class T>
struct Schema;

template <>
struct Schema<Budget> {
  static constexpr std::tuple FIELDS{
      omittable("channel_ms", &Budget::channelMs, WIRE_DURATION),
      omittable("command_ms", &Budget::commandMs, Range{1, MAX_COMMAND_MS}),
      defaulted("untimed_bound_ms", &Budget::untimedBoundMs, WIRE_DURATION),
  };
  static bool crossRules(const Budget& b) {
    return !b.commandMs || *b.commandMs <= b.untimedBoundMs;
  }
};

template <>
struct Schema<DiagEntry> {
  static constexpr std::tuple FIELDS{
      defaulted("detail", &DiagEntry::detail, Length{0, MAX_DIAG_DETAIL_LENGTH}),
      required("event", &DiagEntry::event, Length{1, MAX_DIAG_EVENT_LENGTH}),
      required("level", &DiagEntry::level),
      omittable("request_id", &DiagEntry::requestId, Length{0, MAX_DIAG_REQUEST_ID_LENGTH}),
      required("ts_ms", &DiagEntry::tsMs, WIRE_INTEGER),
  };
};

template <>
struct Schema<End> {
  static constexpr std::tuple FIELDS{
      required("sha256", &End::sha256),
      required("size", &End::size, BULK_SIZE),
  };
};

// ---- requests to a guest ----

template <>
struct Schema<Ping> {
  static constexpr std::string_view KIND = "ping";
  static constexpr std::tuple<> FIELDS{};
};

template <>
struct Schema<Exec> {
  static constexpr std::string_view KIND = "exec";
  static constexpr std::tuple FIELDS{
      defaulted("budget", &Exec::budget),     required("cmd", &Exec::cmd, Count{1}),
      omittable("cwd", &Exec::cwd, Length{}), omittable("data_size", &Exec::dataSize, BULK_SIZE),
      defaulted("env", &Exec::env),           omittable("user", &Exec::user, Length{}),
  };
};

template <>
struct Schema<ReadFile> {
  static constexpr std::string_view KIND = "read_file";
  static constexpr std::tuple FIELDS{
      defaulted("budget", &ReadFile::budget),
      omittable("max_bytes", &ReadFile::maxBytes, BULK_SIZE),
      required("path", &ReadFile::path, NOT_EMPTY),
  };
};

template <>
struct Schema<WriteFile> {
  static constexpr std::string_view KIND = "write_file";
  static constexpr std::tuple FIELDS{
      defaulted("budget", &WriteFile::budget),
      required("data_size", &WriteFile::dataSize, BULK_SIZE),
      omittable("mode", &WriteFile::mode, Range{0, MAX_FILE_MODE}),
      required("path", &WriteFile::path, NOT_EMPTY),
  };
};

template <>
struct Schema<Forward> {
  static constexpr std::string_view KIND = "forward";
  static constexpr std::tuple FIELDS{
      defaulted("budget", &Forward::budget),
      required("host", &Forward::host, NOT_EMPTY),
      required("port", &Forward::port, Range{1, 65535}),
  };
};

template <>
struct Schema<Poll> {
  static constexpr std::string_view KIND = "poll";
  static constexpr std::tuple FIELDS{required("target_id", &Poll::targetId)};
};

template <>
struct Schema<Ack> {
  static constexpr std::string_view KIND = "ack";
  static constexpr std::tuple FIELDS{required("target_id", &Ack::targetId)};
};

template <>
struct Schema<Diag> {
  static constexpr std::string_view KIND = "diag";
  static constexpr std::tuple FIELDS{
      defaulted("max_entries", &Diag::maxEntries, Range{1, MAX_DIAG_ENTRIES})};
};

// ---- replies of a guest ----

template <>
struct Schema<Pong> {
  static constexpr std::string_view KIND = "pong";
  static constexpr std::tuple FIELDS{
      required("daemon", &Pong::daemon, Length{0, MAX_DAEMON_LENGTH}),
      defaulted("protocol", &Pong::protocol, Range{PROTOCOL_VERSION, PROTOCOL_VERSION}),
      required("session", &Pong::session),
  };
};

template <>
struct Schema<ExecResult> {
  static constexpr std::string_view KIND = "exec_result";
  static constexpr std::tuple FIELDS{
      omittable("data_size", &ExecResult::dataSize, BULK_SIZE),
      required("rc", &ExecResult::rc,
               Range{std::numeric_limits<std::int32_t>::min(),
                     std::numeric_limits<std::int32_t>::max()}),
      required("stderr_size", &ExecResult::stderrSize, BULK_SIZE),
      defaulted("stderr_truncated", &ExecResult::stderrTruncated),
      required("stdout_size", &ExecResult::stdoutSize, BULK_SIZE),
      defaulted("stdout_truncated", &ExecResult::stdoutTruncated),
  };
  static bool crossRules(const ExecResult& r) {
    return r.stdoutSize + r.stderrSize == r.dataSize.value_or(0);
  }
};

template <>
struct Schema<FileData> {
  static constexpr std::string_view KIND = "file_data";
  static constexpr std::tuple FIELDS{
      omittable("data_size", &FileData::dataSize, BULK_SIZE),
      required("size", &FileData::size, BULK_SIZE),
      defaulted("truncated", &FileData::truncated),
  };
  static bool crossRules(const FileData& r) { return r.size == r.dataSize.value_or(0); }
};

template <>
struct Schema<Ok> {
  static constexpr std::string_view KIND = "ok";
  static constexpr std::tuple<> FIELDS{};
};

template <>
struct Schema<Pending> {
  static constexpr std::string_view KIND = "pending";
  static constexpr std::tuple FIELDS{
      required("elapsed_ms", &Pending::elapsedMs, WIRE_INTEGER),
      required("target_id", &Pending::targetId),
  };
};

template <>
struct Schema<ForwardOk> {
  static constexpr std::string_view KIND = "forward_ok";
  static constexpr std::tuple FIELDS{required("handle", &ForwardOk::handle)};
};

template <>
struct Schema<DiagResult> {
  static constexpr std::string_view KIND = "diag_result";
  static constexpr std::tuple FIELDS{
      required("entries", &DiagResult::entries, Count{0, MAX_DIAG_ENTRIES}),
      defaulted("listener_restarts", &DiagResult::listenerRestarts, WIRE_INTEGER),
  };
};

template <>
struct Schema<Error> {
  static constexpr std::string_view KIND = "error";
  static constexpr std::tuple FIELDS{
      required("errno", &Error::errnoName, ErrnoShape{}),
      omittable("layer", &Error::layer),
      required("message", &Error::message, Length{0, MAX_MESSAGE_LENGTH}),
      omittable("partial", &Error::partial, Length{0, MAX_PARTIAL_LENGTH}),
  };
  static bool crossRules(const Error& e) {
    const bool timedOut = e.errnoName == "ETIME" || e.errnoName == "ETIMEDOUT";
    return timedOut ? e.layer.has_value() : !e.partial.has_value();
  }
};

// ---- host plane ----

template <>
struct Schema<Realize> {
  static constexpr std::string_view KIND = "realize";
  static constexpr std::tuple FIELDS{
      required("bundle_digest", &Realize::bundleDigest),
      defaulted("grants", &Realize::grants, Count{0, MAX_GRANTS}),
  };
};

template <>
struct Schema<Teardown> {
  static constexpr std::string_view KIND = "teardown";
  static constexpr std::tuple<> FIELDS{};
};

template <>
struct Schema<StageReport> {
  static constexpr std::string_view KIND = "stage";
  static constexpr std::tuple FIELDS{
      defaulted("detail", &StageReport::detail, Length{0, MAX_STAGE_DETAIL_LENGTH}),
      defaulted("guests", &StageReport::guests),
      required("stage", &StageReport::stage),
  };
};

template <>
struct Schema<Heartbeat> {
  static constexpr std::string_view KIND = "heartbeat";
  static constexpr std::tuple FIELDS{
      defaulted("guests", &Heartbeat::guests),
      required("uptime_ms", &Heartbeat::uptimeMs, WIRE_INTEGER),
  };
};

// ---- walking the tables ----

template <class T>
concept HasSchema = requires {
  Schema<T>::FIELDS;
};

// f(field) for each field of T in order, until one returns false.
template <class T, class F>
constexpr bool eachField(F&& f) {
  return std::apply([&](const auto&... field) { return (f(field) && ...); }, Schema<T>::FIELDS);
}

template <class T>
constexpr bool sortedByName() {
  std::string_view last;
  return eachField<T>([&](const auto& field) {
    const bool rising = last < field.name;
    last = field.name;
    return rising;
  });
}

template <class... Kinds>
constexpr bool allSorted(const std::variant<Kinds...>*) {
  return (sortedByName<Kinds>() && ...);
}
static_assert(allSorted(static_cast<const Body*>(nullptr)) && sortedByName<Budget>() &&
              sortedByName<DiagEntry>() && sortedByName<End>());

}  // namespace cordon::channel
