// QEMU's argument vector, built from typed values and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cordon::launch {

struct QemuMachine {
  bool kvm = false;
  std::uint32_t cpus = 1;
  std::uint32_t memoryMib = 256;
  std::uint32_t kernelImage = 0;  // n of /img/n in the VMM's view
  std::uint32_t initrdImage = 1;
  std::vector<std::string> append;  // words for the kernel's command line, checked by options.h
  int vhostUserFd = -1;             // the front end's end of the socketpair to cordon-vsock
  std::optional<int> consoleFd;     // write end of a pipe; nothing: no serial port
};

// argv, argv[0] included.
std::vector<std::string> qemuArguments(const std::string& binary, const QemuMachine& machine);

}  // namespace cordon::launch
