#include "services/helper/launch/qemu-arguments.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace cordon::launch {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

std::string valueOf(const std::vector<std::string>& arguments, const std::string& option,
                    std::size_t nth = 0) {
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (arguments[i] == option && nth-- == 0) return arguments[i + 1];
  }
  return "(absent)";
}

QemuMachine exampleMachine() {
  QemuMachine machine;
  machine.cpus = 2;
  machine.memoryMib = 320;
  machine.vhostUserFd = 3;
  return machine;
}

TEST(QemuArguments, AreExactlyTheDevicesOfAGuest) {
  QemuMachine machine = exampleMachine();
  machine.consoleFd = 4;
  machine.append = {"cordon.hostname=web"};
  EXPECT_THAT(
      qemuArguments("/usr/bin/qemu-system-x86_64", machine),
      ElementsAre("/usr/bin/qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot",
                  "-display", "none", "-monitor", "none", "-machine",
                  "q35,i8042=off,smbus=off,sata=off,hpet=off,vmport=off,usb=off,graphics=off,"
                  "memory-backend=m",
                  "-object", "memory-backend-memfd,id=m,size=320M,share=on,seal=on", "-m", "320M",
                  "-smp", "2", "-accel", "tcg,thread=multi,tb-size=128", "-cpu",
                  "max,-svm,-vmx,min-xlevel=0x80000008", "-object", "rng-builtin,id=rng", "-device",
                  "virtio-rng-pci,rng=rng", "-chardev", "socket,id=vsock,fd=3", "-device",
                  "vhost-user-vsock-pci,chardev=vsock", "-add-fd", "set=1,fd=4", "-chardev",
                  "file,id=console,path=/dev/fdset/1,append=on", "-serial", "chardev:console",
                  "-kernel", "/img/0", "-initrd", "/img/1", "-append",
                  "console=ttyS0 quiet panic=-1 cordon.hostname=web", "-sandbox",
                  "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"));
}

TEST(QemuArguments, KvmTakesTheHostsProcessorLessNesting) {
  QemuMachine machine = exampleMachine();
  machine.kvm = true;
  std::vector<std::string> arguments = qemuArguments("qemu", machine);
  EXPECT_EQ(valueOf(arguments, "-accel"), "kvm");
  EXPECT_EQ(valueOf(arguments, "-cpu"), "host,-svm,-vmx,min-xlevel=0x80000008");
}

TEST(QemuArguments, NoConsoleMeansNoSerialPort) {
  std::vector<std::string> arguments = qemuArguments("qemu", exampleMachine());
  EXPECT_THAT(arguments, Not(Contains("-serial")));
  EXPECT_THAT(arguments, Not(Contains("-add-fd")));
}

// A word of the command line that looks like an option of QEMU stays one argument's text.
TEST(QemuArguments, AppendedWordsCannotBecomeOptions) {
  QemuMachine machine = exampleMachine();
  machine.append = {"-device", "a,b=c"};
  std::vector<std::string> arguments = qemuArguments("qemu", machine);
  EXPECT_EQ(valueOf(arguments, "-append"), "console=ttyS0 quiet panic=-1 -device a,b=c");
  EXPECT_EQ(std::count(arguments.begin(), arguments.end(), "-device"), 2);
}

}  // namespace
}  // namespace cordon::launch
