#include "services/helper/launch/qemu-arguments.h"

#include <string>

namespace cordon::launch {
namespace {

// Nested virtualisation off: a guest has no use for it, and it is the least used code of either
// accelerator. min-xlevel: without svm QEMU lowers the highest extended CPUID leaf below
// 0x80000008; a kernel then takes addresses for 48 bits wide while it runs with five-level page
// tables, and refuses its own pointers (every d_path() returns "x").
constexpr const char* CPU_LESS_NESTING = ",-svm,-vmx,min-xlevel=0x80000008";

}  // namespace

std::vector<std::string> qemuArguments(const std::string& binary, const QemuMachine& machine) {
  const std::string memory = std::to_string(machine.memoryMib) + "M";
  std::vector<std::string> arguments = {binary};
  auto add = [&](const std::string& option, const std::string& value) {
    arguments.push_back(option);
    arguments.push_back(value);
  };

  // No device, no configuration file, no display and no monitor but what stands here.
  arguments.insert(arguments.end(), {"-nodefaults", "-no-user-config", "-no-reboot"});
  add("-display", "none");
  add("-monitor", "none");
  add("-machine",
      "q35,i8042=off,smbus=off,sata=off,hpet=off,vmport=off,usb=off,graphics=off,memory-backend=m");
  // Shared with cordon-vsock, which refuses memory that could shrink under it.
  add("-object", "memory-backend-memfd,id=m,size=" + memory + ",share=on,seal=on");
  add("-m", memory);
  add("-smp", std::to_string(machine.cpus));
  add("-accel", machine.kvm ? "kvm" : "tcg,thread=multi,tb-size=128");
  add("-cpu", std::string(machine.kvm ? "host" : "max") + CPU_LESS_NESTING);

  add("-object", "rng-builtin,id=rng");
  add("-device", "virtio-rng-pci,rng=rng");
  add("-chardev", "socket,id=vsock,fd=" + std::to_string(machine.vhostUserFd));
  add("-device", "vhost-user-vsock-pci,chardev=vsock");
  if (machine.consoleFd) {
    // By descriptor set and not by path: the view holds no file that could be opened. Appending,
    // because QEMU truncates otherwise, which a pipe refuses.
    add("-add-fd", "set=1,fd=" + std::to_string(*machine.consoleFd));
    add("-chardev", "file,id=console,path=/dev/fdset/1,append=on");
    add("-serial", "chardev:console");
  }

  std::string line = "console=ttyS0 quiet panic=-1";
  for (const std::string& word : machine.append) line += " " + word;
  add("-kernel", "/img/" + std::to_string(machine.kernelImage));
  add("-initrd", "/img/" + std::to_string(machine.initrdImage));
  add("-append", line);

  add("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
  return arguments;
}

}  // namespace cordon::launch
