#include "services/vsock/log.h"

#include <algorithm>
#include <string>
#include <unistd.h>

namespace cordon::vsock {

void Log::line(std::string_view event, Fields fields) {
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
  write(event, fields);
}

void Log::always(std::string_view event, Fields fields) {
  write(event, fields);
}

void Log::write(std::string_view event, const Fields& fields) {
  std::string text = "service=cordon-vsock event=";
  text += event;
  for (const auto& [key, value] : fields) {
    text += ' ';
    text += key;
    text += '=';
    if (value.numeric) {
      text += std::to_string(value.number);
    } else {
      text += value.word;
    }
  }
  if (suppressed > 0) text += " suppressed_before=" + std::to_string(std::exchange(suppressed, 0));
  text += '\n';
  // A journal that is gone is no reason to stop serving.
  [[maybe_unused]] const ssize_t ignored = ::write(fd, text.data(), text.size());
}

}  // namespace cordon::vsock
