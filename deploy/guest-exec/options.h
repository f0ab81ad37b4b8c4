// The command line of cordon-guest-exec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace cordon::deploy {

struct ExecOptions {
  std::string parserPath;  // of --parser uds:PATH
  std::uint32_t cid = 0;   // 3..65535
  std::uint32_t uid = 0;   // of the guest's VMM
  std::optional<std::string> user;
  std::uint32_t timeoutSeconds = 60;  // 1..14400, of the command in the guest
  std::uint32_t waitSeconds = 60;     // 0..3600, for parser and guest to be ready
  std::vector<std::string> argv;      // at least one
};
struct HelpOptions {};
struct UsageError {
  std::string text;
};

// `arguments` without the program's name.
std::variant<ExecOptions, HelpOptions, UsageError> parseOptions(
    const std::vector<std::string>& arguments);

extern const char USAGE_TEXT[];

}  // namespace cordon::deploy
