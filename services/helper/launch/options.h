// The command line of cordon-launch, validated as a whole before anything privileged happens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace cordon::launch {

enum class Accel : std::uint8_t { AUTO, TCG, KVM };

struct GuestOptions {
  std::string range;           // 8 digits of [0-9a-f]
  std::uint32_t cid = 0;       // MIN_CID..MAX_CID
  std::uint32_t firstCid = 0;  // of the range: tells which parser may reach the guest; default: cid
  std::string kernel;
  std::string initrd;
  std::vector<std::string>
      append;  // words of the kernel's command line: printable ASCII, no space, 1536 bytes in all
  std::uint32_t memoryMib = 256;  // 64..1048576
  std::uint32_t cpus = 1;         // 1..64
  Accel accel = Accel::AUTO;
  std::optional<std::string>
      console;  // file that takes what the guest prints, at most CONSOLE_LIMIT bytes of it
  std::string runtimeDir = "/run/cordon";
  std::string vsockBinary;  // default: cordon-vsock beside this program
  std::string vmmBinary = "/usr/bin/qemu-system-x86_64";
};

struct ParserOptions {
  std::string range;
  std::uint32_t firstCid = 0;
  std::string listenPath;                // absolute, of --listen uds:PATH
  std::vector<std::uint32_t> allowUids;  // who may connect; default: this program's own uid
  std::string runtimeDir = "/run/cordon";
  std::string parserBinary;  // default: cordon-parser beside this program
};

struct HelpOptions {};

using Options = std::variant<GuestOptions, ParserOptions, HelpOptions>;

// Throws LaunchError USAGE or BAD_ARGUMENT. Does not look at the file system. ownFolder: where this
// program lies.
Options parseOptions(const std::vector<std::string>& arguments, const std::string& ownFolder);

// What --help prints.
extern const char USAGE_TEXT[];

}  // namespace cordon::launch
