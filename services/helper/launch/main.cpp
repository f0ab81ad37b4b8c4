// cordon-launch: builds the cells of one guest, or of one range's parser, and stays until they end.
#include <array>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <variant>
#include <vector>

#include "services/helper/launch/error.h"
#include "services/helper/launch/log.h"
#include "services/helper/launch/options.h"
#include "services/helper/launch/supervise.h"
#include "services/helper/launch/verbs.h"

namespace {

constexpr int OWN_FAILURE = 125;  // cordon-launch failed, not what it ran

std::string ownFolder() {
  std::array<char, 4096> buffer;
  ssize_t size = readlink("/proc/self/exe", buffer.data(), buffer.size());
  if (size <= 0) cordon::launch::failStep("find-own-folder", "/proc/self/exe");
  std::string path(buffer.data(), static_cast<std::size_t>(size));
  return path.substr(0, path.rfind('/'));
}

// A descriptor opened later must not become number 0, 1 or 2 and be taken for a log.
void fillStandardDescriptors() {
  int fd = -1;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) close(fd);
}

cordon::launch::Ending run(const std::vector<std::string>& arguments) {
  using namespace cordon::launch;
  Options options = parseOptions(arguments, ownFolder());
  if (const auto* guest = std::get_if<GuestOptions>(&options)) return runGuest(*guest);
  if (const auto* parser = std::get_if<ParserOptions>(&options)) return runParser(*parser);
  std::fputs(USAGE_TEXT, stdout);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  fillStandardDescriptors();
  try {
    cordon::launch::endAs(run({argv + 1, argv + argc}));
  } catch (const std::exception& error) {
    cordon::launch::warn(error.what());
    return OWN_FAILURE;
  }
}
