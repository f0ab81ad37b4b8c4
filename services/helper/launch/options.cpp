#include "services/helper/launch/options.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <string_view>
#include <sys/un.h>
#include <utility>

#include "services/helper/launch/error.h"
#include "services/helper/launch/identity.h"

namespace cordon::launch {

const char USAGE_TEXT[] =
    "usage: cordon-launch guest --range RID --cid CID --kernel FILE --initrd FILE [option…]\n"
    "       cordon-launch parser --range RID --role channel --first-cid CID --listen uds:PATH "
    "[option…]\n"
    "\n"
    "Runs one guest (its VMM and its vsock device) or one range's parser, each process in a cell "
    "of its own, in the\n"
    "foreground and as root, until it ends or SIGTERM comes. Exits with the program's code or "
    "signal; 125 where\n"
    "cordon-launch itself failed.\n"
    "\n"
    "  --range RID            8 digits of 0-9a-f\n"
    "  --first-cid CID        the range's first CID (guest: default its own)\n"
    "  --runtime-dir DIR      default /run/cordon\n"
    "guest:\n"
    "  --cid CID              3..65535; the guest runs under uid 1879048192 + CID\n"
    "  --kernel FILE, --initrd FILE\n"
    "  --append WORD          one more word for the kernel's command line; may be repeated\n"
    "  --memory MIB           64..1048576, default 256\n"
    "  --cpus N               1..64, default 1\n"
    "  --accel auto|tcg|kvm   default auto: KVM where it works, else TCG with a warning\n"
    "  --console FILE         takes the first 16 MiB that the guest prints\n"
    "  --vsock-binary FILE    default: cordon-vsock beside this program\n"
    "parser:\n"
    "  --listen uds:PATH      where its callers connect; its folder is made and removed\n"
    "  --allow-uid UID        who may connect; may be repeated; default: the caller's\n"
    "  --parser-binary FILE   default: cordon-parser beside this program\n";

namespace {

constexpr std::size_t MAX_PATH_LENGTH = 4095;
constexpr std::size_t MAX_APPEND_LENGTH = 1536;

[[noreturn]] void usage(const std::string& subject, const std::string& why) {
  throw LaunchError(Code::USAGE, "parse-options", subject, 0, why);
}

[[noreturn]] void bad(const std::string& option, const std::string& why) {
  throw LaunchError(Code::BAD_ARGUMENT, "parse-options", option, 0, why);
}

std::uint32_t number(const std::string& option, const std::string& text, std::uint32_t least,
                     std::uint32_t most) {
  std::uint32_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool canonical =
      error == std::errc() && end == text.data() + text.size() && std::to_string(value) == text;
  if (!canonical || value < least || value > most) {
    bad(option, "must be a number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

std::string rangeId(const std::string& option, const std::string& text) {
  bool digits = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (text.size() != 8 || !digits) bad(option, "must be 8 digits of 0-9a-f");
  return text;
}

std::string filePath(const std::string& option, const std::string& text) {
  bool printable =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c != 0x7f; });
  if (text.empty() || text.size() > MAX_PATH_LENGTH || !printable)
    bad(option, "must be a path of printable ASCII");
  return text;
}

std::string absolutePath(const std::string& option, const std::string& text) {
  filePath(option, text);
  // "." and ".." would make two spellings of one place, and the socket's path is compared as text.
  bool plain = text.front() == '/' && text.back() != '/' && text.find("//") == std::string::npos &&
               (text + "/").find("/./") == std::string::npos &&
               (text + "/").find("/../") == std::string::npos;
  if (!plain) bad(option, "must be an absolute path without empty, '.' or '..' parts");
  return text;
}

void fitsSocketAddress(const std::string& option, const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un{}.sun_path))
    bad(option, "makes a socket path of over 107 bytes: " + path);
}

// One option: takes its value. `repeats` where it may be given more than once.
struct Taker {
  std::function<void(const std::string& option, const std::string& value)> take;
  bool repeats = false;
};

void takeAll(const std::vector<std::string>& arguments,
             const std::map<std::string, Taker, std::less<>>& takers,
             const std::vector<std::string>& required) {
  std::vector<std::string> seen;
  for (std::size_t i = 1; i < arguments.size(); i += 2) {
    const std::string& option = arguments[i];
    auto taker = takers.find(option);
    if (taker == takers.end()) usage(option, "no such option of '" + arguments[0] + "'");
    if (i + 1 == arguments.size()) usage(option, "needs a value");
    if (!taker->second.repeats && std::find(seen.begin(), seen.end(), option) != seen.end()) {
      usage(option, "given twice");
    }
    seen.push_back(option);
    taker->second.take(option, arguments[i + 1]);
  }
  for (const std::string& option : required) {
    if (std::find(seen.begin(), seen.end(), option) == seen.end()) usage(option, "is required");
  }
}

Taker store(std::string& target, std::string (*check)(const std::string&, const std::string&)) {
  return {[&target, check](const std::string& option, const std::string& value) {
    target = check(option, value);
  }};
}

Taker storeNumber(std::uint32_t& target, std::uint32_t least, std::uint32_t most) {
  return {[&target, least, most](const std::string& option, const std::string& value) {
    target = number(option, value, least, most);
  }};
}

void takeAppend(GuestOptions& options, const std::string& option, const std::string& word) {
  bool printable =
      std::all_of(word.begin(), word.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (word.empty() || !printable) bad(option, "must be one word of printable ASCII");
  options.append.push_back(word);
  std::size_t total = 0;
  for (const std::string& each : options.append) total += each.size() + 1;
  if (total > MAX_APPEND_LENGTH)
    bad(option, "is over " + std::to_string(MAX_APPEND_LENGTH) + " bytes in all");
}

Accel takeAccel(const std::string& option, const std::string& value) {
  if (value == "auto") return Accel::AUTO;
  if (value == "tcg") return Accel::TCG;
  if (value == "kvm") return Accel::KVM;
  bad(option, "must be auto, tcg or kvm");
}

GuestOptions parseGuest(const std::vector<std::string>& arguments, const std::string& ownFolder) {
  GuestOptions options;
  options.vsockBinary = ownFolder + "/cordon-vsock";
  takeAll(
      arguments,
      {{"--range", store(options.range, rangeId)},
       {"--cid", storeNumber(options.cid, MIN_CID, MAX_CID)},
       {"--first-cid", storeNumber(options.firstCid, MIN_CID, MAX_CID)},
       {"--kernel", store(options.kernel, filePath)},
       {"--initrd", store(options.initrd, filePath)},
       {"--append",
        {[&](const auto& option, const auto& value) { takeAppend(options, option, value); }, true}},
       {"--memory", storeNumber(options.memoryMib, 64, 1048576)},
       {"--cpus", storeNumber(options.cpus, 1, 64)},
       {"--accel",
        {[&](const auto& option, const auto& value) { options.accel = takeAccel(option, value); }}},
       {"--console", {[&](const auto& option, const auto& value) {
          options.console = filePath(option, value);
        }}},
       {"--runtime-dir", store(options.runtimeDir, absolutePath)},
       {"--vsock-binary", store(options.vsockBinary, filePath)},
       {"--vmm-binary", store(options.vmmBinary, filePath)}},
      {"--range", "--cid", "--kernel", "--initrd"});
  if (options.firstCid == 0) options.firstCid = options.cid;
  fitsSocketAddress("--runtime-dir", options.runtimeDir + "/ranges/" + options.range + "/" +
                                         std::to_string(options.cid) + "/vsock.sock");
  return options;
}

ParserOptions parseParser(const std::vector<std::string>& arguments, const std::string& ownFolder) {
  ParserOptions options;
  options.parserBinary = ownFolder + "/cordon-parser";
  auto takeRole = [](const std::string& option, const std::string& value) {
    if (value != "channel") bad(option, "must be channel");
  };
  auto takeListen = [&](const std::string& option, const std::string& value) {
    if (!value.starts_with("uds:")) bad(option, "must be uds:PATH");
    options.listenPath = absolutePath(option, value.substr(4));
    fitsSocketAddress(option, options.listenPath);
  };
  auto takeAllowUid = [&](const std::string& option, const std::string& value) {
    options.allowUids.push_back(number(option, value, 0, UINT32_MAX - 1));
  };
  takeAll(arguments,
          {{"--range", store(options.range, rangeId)},
           {"--role", {takeRole}},
           {"--first-cid", storeNumber(options.firstCid, MIN_CID, MAX_CID)},
           {"--listen", {takeListen}},
           {"--allow-uid", {takeAllowUid, true}},
           {"--runtime-dir", store(options.runtimeDir, absolutePath)},
           {"--parser-binary", store(options.parserBinary, filePath)}},
          {"--range", "--role", "--first-cid", "--listen"});
  return options;
}

}  // namespace

Options parseOptions(const std::vector<std::string>& arguments, const std::string& ownFolder) {
  if (arguments.empty()) usage("verb", "guest or parser is required; --help says more");
  if (arguments[0] == "--help" || arguments[0] == "-h") return HelpOptions{};
  if (arguments[0] == "guest") return parseGuest(arguments, ownFolder);
  if (arguments[0] == "parser") return parseParser(arguments, ownFolder);
  usage(arguments[0], "no such verb: guest or parser");
}

}  // namespace cordon::launch
