#include "deploy/guest-exec/options.h"

#include <charconv>
#include <set>

namespace cordon::deploy {

const char USAGE_TEXT[] =
    "usage: cordon-guest-exec --parser uds:PATH --cid N --uid U [option…] -- COMMAND [ARGUMENT…]\n"
    "\n"
    "Runs a command in a guest, through that range's channel parser, and prints what it wrote. "
    "Bytes that could act on\n"
    "a terminal are escaped where output goes to one.\n"
    "\n"
    "  --parser uds:PATH   where the parser listens\n"
    "  --cid N             the guest\n"
    "  --uid U             the uid that its VMM runs under\n"
    "  --user NAME         the guest's user; default: the guest's default user\n"
    "  --timeout S         seconds that the command may take, default 60\n"
    "  --wait S            seconds to wait until the guest answers, default 60\n"
    "\n"
    "Exits with the command's code, 128+N where signal N killed it, 255 where there is no "
    "result.\n";

namespace {

std::optional<std::uint32_t> number(const std::string& text, std::uint32_t least,
                                    std::uint32_t most) {
  std::uint32_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    return std::nullopt;
  return value;
}

}  // namespace

std::variant<ExecOptions, HelpOptions, UsageError> parseOptions(
    const std::vector<std::string>& arguments) {
  ExecOptions options;
  std::set<std::string> seen;
  std::size_t i = 0;
  for (; i < arguments.size() && arguments[i] != "--"; i += 2) {
    const std::string& option = arguments[i];
    if (option == "--help" || option == "-h") return HelpOptions{};
    if (!seen.insert(option).second) return UsageError{option + ": given twice"};
    if (i + 1 == arguments.size()) return UsageError{option + ": needs a value"};
    const std::string& value = arguments[i + 1];
    auto take = [&](std::uint32_t& target, std::uint32_t least, std::uint32_t most) {
      auto parsed = number(value, least, most);
      if (parsed) target = *parsed;
      return parsed.has_value();
    };
    bool legal = true;
    if (option == "--parser") {
      legal = value.starts_with("uds:/");
      if (legal) options.parserPath = value.substr(4);
    } else if (option == "--cid") {
      legal = take(options.cid, 3, 65535);
    } else if (option == "--uid") {
      legal = take(options.uid, 0, UINT32_MAX - 1);
    } else if (option == "--user") {
      legal = !value.empty();
      options.user = value;
    } else if (option == "--timeout") {
      legal = take(options.timeoutSeconds, 1, 14400);
    } else if (option == "--wait") {
      legal = take(options.waitSeconds, 0, 3600);
    } else {
      return UsageError{option + ": no such option; the command goes behind --"};
    }
    if (!legal)
      return UsageError{
          std::string(option).append(": '").append(value).append("' is not a value for it")};
  }
  for (const char* required : {"--parser", "--cid", "--uid"}) {
    if (!seen.contains(required)) return UsageError{std::string(required) + ": is required"};
  }
  if (i + 1 >= arguments.size()) return UsageError{"a command is required behind --"};
  options.argv.assign(arguments.begin() + static_cast<long>(i) + 1, arguments.end());
  return options;
}

}  // namespace cordon::deploy
