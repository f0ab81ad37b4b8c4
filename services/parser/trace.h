// What went over a guest's channel lately, for the record of a verdict. Never holds bulk or text of
// a guest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kj/common.h>
#include <kj/time.h>

#include "common/channel/message.h"
#include "services/parser/outcome.h"

namespace cordon::parser {

inline constexpr std::size_t TRACE_CAPACITY = 256;
inline constexpr std::size_t TRACE_DUMP = 40;

enum class TraceStep : std::uint8_t {
  DIAL_FAILED,
  SENT_CONTROL,
  SENT_BULK,  // all DATA frames of a message in one event
  SENT_END,
  GOT_CONTROL,
  GOT_BULK,  // what came of the DATA frames of a message, in one event
  GOT_END,
  GOT_EOF,  // behind a whole reply
  LOST,     // connection error, clean close or truncation before that
  EXPIRED,  // the window of the round trip ran out
  REFUSED,  // judged tamper
};
std::string_view name(TraceStep step);

struct TraceEvent {
  kj::TimePoint at = kj::origin<kj::TimePoint>();
  TraceStep step = TraceStep::LOST;
  channel::Id id;         // of the request
  std::string_view kind;  // of the message, a constant of common/channel; empty where there is none
  std::uint64_t size = 0;                 // bytes, frame headers not counted for bulk
  std::optional<channel::Sha256> digest;  // of the bulk (…_END), of the offending bytes (REFUSED)
};
std::string toText(const TraceEvent& event);

// The last TRACE_CAPACITY events of one guest.
class Trace {
 public:
  void add(const TraceEvent& event);
  // The newest events, at most TRACE_DUMP of them, oldest first.
  [[nodiscard]] std::vector<TraceEvent> tail() const;
  [[nodiscard]] std::size_t size() const { return count; }

 private:
  std::array<TraceEvent, TRACE_CAPACITY> ring;
  std::size_t count = 0;
  std::size_t next = 0;
};

// Told of every verdict that the record must explain.
class VerdictLog {
 public:
  virtual ~VerdictLog() noexcept(false) = default;
  // `operation`: the wire's word for the request ("exec", "ack", …); `tail`: as Trace::tail. Called
  // for tamper, budget and loss, also for those of an ack or a session check that do not fail the
  // operation itself (`swallowed`).
  virtual void verdict(std::string_view operation, const channel::Id& id, const Failure& failure,
                       bool swallowed, const std::vector<TraceEvent>& tail) = 0;
};

}  // namespace cordon::parser
