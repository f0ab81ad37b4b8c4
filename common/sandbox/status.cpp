#include "common/sandbox/status.h"

#include <charconv>

namespace cordon::sandbox {
namespace {

// The value of the line "NAME:\t…"; nothing if there is none.
std::optional<std::string_view> findLine(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':') {
      return line.substr(name.size() + 1);
    }
    if (end == std::string_view::npos) {
      break;
    }
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

std::optional<std::vector<std::uint64_t>> parseNumbers(std::string_view text, int base) {
  std::vector<std::uint64_t> numbers;
  while (true) {
    const auto begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) {
      return numbers;
    }
    text.remove_prefix(begin);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (error != std::errc{}) {
      return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    numbers.push_back(number);
  }
}

constexpr int DECIMAL = 10;
constexpr int HEXADECIMAL = 16;

bool readList(std::string_view text, std::string_view name, std::size_t least,
              std::vector<std::uint64_t>& list) {
  const auto line = findLine(text, name);
  auto numbers = line ? parseNumbers(*line, DECIMAL) : std::nullopt;
  if (!numbers || numbers->size() < least) {
    return false;
  }
  list = std::move(*numbers);
  return true;
}

bool readNumber(std::string_view text, std::string_view name, int base, std::uint64_t& number) {
  const auto line = findLine(text, name);
  const auto numbers = line ? parseNumbers(*line, base) : std::nullopt;
  if (!numbers || numbers->size() != 1) {
    return false;
  }
  number = numbers->front();
  return true;
}

}  // namespace

std::optional<Status> parseStatus(std::string_view text) {
  constexpr std::size_t IDENTITIES = 4;
  Status status;
  const bool isComplete = readList(text, "Uid", IDENTITIES, status.uids) &&
                          readList(text, "Gid", IDENTITIES, status.gids) &&
                          readList(text, "Groups", 0, status.groups) &&
                          readList(text, "NSpid", 1, status.pids) &&
                          readNumber(text, "CapInh", HEXADECIMAL, status.inheritable) &&
                          readNumber(text, "CapPrm", HEXADECIMAL, status.permitted) &&
                          readNumber(text, "CapEff", HEXADECIMAL, status.effective) &&
                          readNumber(text, "CapBnd", HEXADECIMAL, status.bounding) &&
                          readNumber(text, "CapAmb", HEXADECIMAL, status.ambient) &&
                          readNumber(text, "NoNewPrivs", DECIMAL, status.noNewPrivs) &&
                          readNumber(text, "Seccomp", DECIMAL, status.seccomp) &&
                          readNumber(text, "Seccomp_filters", DECIMAL, status.filters);
  return isComplete ? std::optional(std::move(status)) : std::nullopt;
}

}  // namespace cordon::sandbox
