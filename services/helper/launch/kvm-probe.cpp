#include "services/helper/launch/kvm-probe.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <linux/kvm.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "services/helper/launch/error.h"

namespace cordon::launch {
namespace {

// 32-bit code: writes a word to each page from 4 KiB on, copies 14 MiB from 1 MiB to 17 MiB, then
// halts: what a kernel does first when it unpacks itself.
constexpr std::array<std::uint8_t, 40> CODE = {
    0xbf,
    0x00,
    0x10,
    0x00,
    0x00,  //       mov edi, 0x1000
    0x89,
    0x3f,  // next: mov [edi], edi
    0x81,
    0xc7,
    0x00,
    0x10,
    0x00,
    0x00,  //       add edi, 0x1000
    0x81,
    0xff,
    PROBE_MEMORY & 0xff,
    (PROBE_MEMORY >> 8) & 0xff,  //       cmp edi, PROBE_MEMORY
    (PROBE_MEMORY >> 16) & 0xff,
    (PROBE_MEMORY >> 24) & 0xff,  //
    0x72,
    0xf0,  //       jb next
    0xbe,
    0x00,
    0x00,
    0x10,
    0x00,  //       mov esi, 0x100000
    0xbf,
    0x00,
    0x00,
    0x10,
    0x01,  //       mov edi, 0x1100000
    0xb9,
    0x00,
    0x00,
    0x38,
    0x00,  //       mov ecx, 0x380000
    0xfc,  //       cld
    0xf3,
    0xa5,   //       rep movsd
    0xf4};  //       hlt

// Which call failed, or 0; the child's exit code.
enum Step : int { NONE, OPEN, VERSION, VM, MEMORY, VCPU, REGISTERS, RUN, HALT };
constexpr std::array<const char*, 9> STEP_NAMES = {"",          "open",   "API version",
                                                   "a VM",      "memory", "a virtual CPU",
                                                   "registers", "run",    "it did not halt"};

void setFlat(kvm_sregs& registers) {
  kvm_segment segment{};
  segment.limit = 0xffffffff;
  segment.selector = 8;
  segment.present = 1;
  segment.type = 11;  // code, readable, accessed
  segment.s = 1;
  segment.db = 1;
  segment.g = 1;
  registers.cs = segment;
  segment.type = 3;  // data, writable, accessed
  segment.selector = 16;
  registers.ds = registers.es = registers.fs = registers.gs = registers.ss = segment;
  registers.cr0 |= 1;  // protected mode, no paging
}

Step tryKvm(const std::string& device) {
  int kvm = open(device.c_str(), O_RDWR | O_CLOEXEC);
  if (kvm < 0) return OPEN;
  if (ioctl(kvm, KVM_GET_API_VERSION, 0) != KVM_API_VERSION) return VERSION;
  int vm = ioctl(kvm, KVM_CREATE_VM, 0);
  if (vm < 0) return VM;
  void* memory =
      mmap(nullptr, PROBE_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return MEMORY;
  std::memcpy(memory, CODE.data(), CODE.size());
  kvm_userspace_memory_region region{};
  region.memory_size = PROBE_MEMORY;
  region.userspace_addr = reinterpret_cast<std::uintptr_t>(memory);
  if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) != 0) return MEMORY;
  int cpu = ioctl(vm, KVM_CREATE_VCPU, 0);
  int runSize = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
  if (cpu < 0 || runSize < static_cast<int>(sizeof(kvm_run))) return VCPU;
  void* mapped =
      mmap(nullptr, static_cast<std::size_t>(runSize), PROT_READ | PROT_WRITE, MAP_SHARED, cpu, 0);
  if (mapped == MAP_FAILED) return VCPU;
  kvm_sregs special{};
  if (ioctl(cpu, KVM_GET_SREGS, &special) != 0) return REGISTERS;
  setFlat(special);
  kvm_regs general{};
  general.rflags = 2;
  if (ioctl(cpu, KVM_SET_SREGS, &special) != 0 || ioctl(cpu, KVM_SET_REGS, &general) != 0)
    return REGISTERS;
  if (ioctl(cpu, KVM_RUN, 0) != 0) return RUN;
  return static_cast<const kvm_run*>(mapped)->exit_reason == KVM_EXIT_HLT ? NONE : HALT;
}

}  // namespace

KvmProbe probeKvm(const std::string& device, std::chrono::milliseconds deadline) {
  if (access(device.c_str(), F_OK) != 0) return {false, device + " is absent"};
  // In a child, because a virtual CPU that makes no progress can only be killed.
  pid_t child = fork();
  if (child < 0) failStep("probe-kvm", device);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    _exit(tryKvm(device));
  }
  UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  pollfd ended{process.get(), POLLIN, 0};
  int answer = process ? poll(&ended, 1, static_cast<int>(deadline.count())) : -1;
  if (answer <= 0) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (answer == 0) {
    return {false, device + " is too slow to boot a kernel: " + std::to_string(PROBE_MEMORY >> 20) +
                       " MiB were not written in " + std::to_string(deadline.count()) + " ms"};
  }
  if (answer < 0 || !WIFEXITED(status)) return {false, device + ": the probe was killed"};
  auto step = static_cast<std::size_t>(WEXITSTATUS(status));
  if (step != NONE)
    return {false,
            device + " does not work: " + STEP_NAMES.at(std::min(step, STEP_NAMES.size() - 1))};
  return {true, {}};
}

}  // namespace cordon::launch
