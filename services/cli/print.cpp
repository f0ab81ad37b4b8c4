#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unistd.h>

#include "services/cli/command.h"

namespace cordon::cli {

bool print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(STDOUT_FILENO, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      std::fprintf(stderr, "cordon: cannot write: %s\n", ::strerrordesc_np(errno));
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

}  // namespace cordon::cli
