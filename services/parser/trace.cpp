#include "services/parser/trace.h"

#include <algorithm>

namespace cordon::parser {

std::string_view name(TraceStep step) {
  static constexpr std::array<std::string_view, 11> NAMES{
      "dial-failed", "sent-control", "sent-bulk", "sent-end", "got-control", "got-bulk",
      "got-end",     "got-eof",      "lost",      "expired",  "refused"};
  const auto index = static_cast<std::size_t>(step);
  return index < NAMES.size() ? NAMES.at(index) : std::string_view("?");
}

std::string toText(const TraceEvent& event) {
  std::string text =
      std::to_string((event.at - kj::origin<kj::TimePoint>()) / kj::MICROSECONDS).append("us ");
  text.append(name(event.step)).append(" id=").append(channel::toHex(event.id));
  if (!event.kind.empty()) text.append(" kind=").append(event.kind);
  text.append(" size=").append(std::to_string(event.size));
  if (event.digest) text.append(" sha256=").append(channel::toHex(*event.digest));
  return text;
}

void Trace::add(const TraceEvent& event) {
  ring.at(next) = event;
  next = (next + 1) % TRACE_CAPACITY;
  count = std::min(count + 1, TRACE_CAPACITY);
}

std::vector<TraceEvent> Trace::tail() const {
  const std::size_t length = std::min(count, TRACE_DUMP);
  std::vector<TraceEvent> events;
  events.reserve(length);
  for (std::size_t age = length; age > 0; --age)
    events.push_back(ring.at((next + TRACE_CAPACITY - age) % TRACE_CAPACITY));
  return events;
}

}  // namespace cordon::parser
