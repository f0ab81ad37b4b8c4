#include "services/vsock/log.h"

#include <algorithm>

namespace cordon::vsock {

void BoundedLog::line(log::Level level, std::string_view event,
                      std::initializer_list<log::Field> fields) {
  const auto now = std::chrono::steady_clock::now();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - refilled).count();
  if (seconds > 0) {
    tokens = static_cast<unsigned>(std::min<std::int64_t>(BURST, tokens + seconds * PER_SECOND));
    refilled = now;
  }
  if (tokens == 0) {
    ++suppressed;
    return;
  }
  --tokens;
  lines.write(level, event, fields);
  if (suppressed > 0) {
    lines.write(log::Level::WARN, "log.suppressed", {{"lines", std::exchange(suppressed, 0)}});
  }
}

}  // namespace cordon::vsock
