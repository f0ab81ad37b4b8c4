// `cordon read junit|verdicts|coverage FILE`: shows what cordon makes of a file.
#pragma once

#include <optional>
#include <string>

#include "common/records/coverage/coverage.h"
#include "services/cli/command.h"

namespace cordon::cli {

struct ReadOptions {
  std::string file;
  bool json = false;
  std::optional<records::Window> window;  // of coverage
};

void declareRead(CLI::App& app, Run& run);

// "FROM,TO" in whole milliseconds within ±(2^53-1), FROM < TO; nothing otherwise.
std::optional<records::Window> parseWindow(const std::string& text);

}  // namespace cordon::cli
