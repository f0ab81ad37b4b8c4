// Lines of telemetry sources, for tests.
#pragma once

#include <cstdint>
#include <string>

namespace cordon::tests {

struct Mark {
  std::string source = "dns";
  std::int64_t seq = 1;
  std::int64_t fromMs = 0;
  std::int64_t toMs = 0;
  std::int64_t dropped = 0;
  bool final = false;
};

inline std::string lineOf(const Mark& mark) {
  const auto field = [](const char* name, std::int64_t value) {
    return std::string(",\"") + name + "\":" + std::to_string(value);
  };
  return R"({"v":1,"source":")" + mark.source + '"' + field("epoch", 1) + field("seq", mark.seq) +
         R"(,"window_ms":[)" + std::to_string(mark.fromMs) + ',' + std::to_string(mark.toMs) + ']' +
         field("events", 0) + field("bytes", 0) + field("dropped", mark.dropped) +
         field("backlog", 0) + field("alive_since_ms", 0) + (mark.final ? R"(,"final":true)" : "") +
         "}\n";
}

// The record of the `seq`-th stretch of so many milliseconds, of a source that began at `beginMs`.
inline Mark stretch(std::int64_t seq, std::int64_t ms, std::int64_t beginMs) {
  return {.seq = seq, .fromMs = beginMs + (seq - 1) * ms, .toMs = beginMs + seq * ms};
}

}  // namespace cordon::tests
