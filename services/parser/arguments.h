// What an operation may be asked for; over it, nothing is sent. Source: the bounds in
// protocols/parser.capnp.
#pragma once

#include <optional>

#include "common/channel/message.h"
#include "services/parser/outcome.h"

namespace cordon::parser {

// Bounds that makeRequest() (exchange.h) does not tell apart: budget, mode, sizes, counts, lengths
// of paths.
std::optional<ArgumentError> checkBudget(const channel::Budget& budget);
std::optional<ArgumentError> checkArguments(const channel::Exec& request);
std::optional<ArgumentError> checkArguments(const channel::ReadFile& request);
std::optional<ArgumentError> checkArguments(const channel::WriteFile& request);
std::optional<ArgumentError> checkArguments(const channel::Diag& request);

}  // namespace cordon::parser
