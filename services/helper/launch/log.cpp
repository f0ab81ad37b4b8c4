#include "services/helper/launch/log.h"

#include <string>
#include <unistd.h>

namespace cordon::launch {
namespace {

void line(std::string_view prefix, std::string_view message) {
  std::string text =
      std::string("cordon-launch: ") + std::string(prefix) + std::string(message) + "\n";
  // One write a line, so that lines of several processes do not mix; a log that cannot be written
  // changes nothing.
  [[maybe_unused]] ssize_t ignored = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

void say(std::string_view message) {
  line("", message);
}
void warn(std::string_view message) {
  line("warning: ", message);
}

}  // namespace cordon::launch
