#include <array>

#include "services/cli/command.h"
#include "services/cli/read/read-command.h"

namespace cordon::cli {

std::span<const Command> commands() {
  static constexpr std::array<Command, 1> ALL = {{
      {declareRead},
  }};
  return ALL;
}

}  // namespace cordon::cli
