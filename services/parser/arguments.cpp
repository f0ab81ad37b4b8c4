#include "services/parser/arguments.h"

#include <string>

#include "services/parser/guest-client.h"

namespace cordon::parser {
namespace {

bool isWithin(std::int64_t value, std::int64_t least, std::int64_t most) {
  return least <= value && value <= most;
}

std::optional<ArgumentError> checkBulk(std::int64_t size) {
  if (isWithin(size, 0, static_cast<std::int64_t>(channel::GUEST_INBOUND_BULK_CAP)))
    return std::nullopt;
  return ArgumentError::BULK_TOO_LARGE;
}

std::optional<ArgumentError> checkPath(const std::string& path) {
  if (path.empty() || path.size() > MAX_PATH_LENGTH) return ArgumentError::BAD_TEXT;
  return std::nullopt;
}

}  // namespace

std::optional<ArgumentError> checkBudget(const channel::Budget& budget) {
  const bool isLegal = isWithin(budget.untimedBoundMs, 1, channel::DEFAULT_UNTIMED_BOUND_MS) &&
                       isWithin(budget.channelMs.value_or(1), 1, channel::MAX_WIRE_INTEGER) &&
                       isWithin(budget.commandMs.value_or(1), 1, channel::MAX_COMMAND_MS) &&
                       budget.commandMs.value_or(1) <= budget.untimedBoundMs;
  return isLegal ? std::nullopt : std::optional(ArgumentError::BAD_BUDGET);
}

std::optional<ArgumentError> checkArguments(const channel::Exec& request) {
  if (request.cmd.empty()) return ArgumentError::BAD_TEXT;
  if (request.cmd.size() > MAX_ARGV || request.env.size() > MAX_ARGV)
    return ArgumentError::TOO_MANY;
  if (const auto error = checkBulk(request.dataSize.value_or(0))) return error;
  return checkBudget(request.budget);
}

std::optional<ArgumentError> checkArguments(const channel::ReadFile& request) {
  if (const auto error = checkPath(request.path)) return error;
  if (!isWithin(request.maxBytes.value_or(0), 0, channel::MAX_DECLARED_BULK))
    return ArgumentError::BULK_TOO_LARGE;
  return checkBudget(request.budget);
}

std::optional<ArgumentError> checkArguments(const channel::WriteFile& request) {
  if (const auto error = checkPath(request.path)) return error;
  if (!isWithin(request.mode.value_or(0), 0, channel::MAX_FILE_MODE))
    return ArgumentError::BAD_MODE;
  if (const auto error = checkBulk(request.dataSize)) return error;
  return checkBudget(request.budget);
}

std::optional<ArgumentError> checkArguments(const channel::Diag& request) {
  if (isWithin(request.maxEntries, 1, channel::MAX_DIAG_ENTRIES)) return std::nullopt;
  return ArgumentError::TOO_MANY;
}

}  // namespace cordon::parser
