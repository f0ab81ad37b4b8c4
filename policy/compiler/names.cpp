#include "policy/compiler/names.h"

#include <array>
#include <cstdlib>
#include <map>
#include <sstream>
#include <stdexcept>

#include <seccomp.h>

namespace cordon::policy::compiler {
namespace {

struct Signature {
  const char* call;
  const char* arguments;  // "name:kind[:PREFIX[,PREFIX]]" in order
};

// Kinds: ptr, fd, count32, count64, flags32, flags64. The width is what the kernel's definition of
// the call reads, not what the C library's prototype says; where it takes an unsigned long but
// knows only bits of the lower half, and the C library passes an int, it is 32.
constexpr std::array SIGNATURES = {
    Signature{"accept", "fd:fd address:ptr length:ptr"},
    Signature{"accept4", "fd:fd address:ptr length:ptr flags:flags32:SOCK_"},
    Signature{"arch_prctl", "option:flags32:ARCH_ address:ptr"},
    Signature{"bind", "fd:fd address:ptr length:count32"},
    Signature{"clock_gettime", "clock:flags32:CLOCK_ time:ptr"},
    Signature{"clock_nanosleep",
              "clock:flags32:CLOCK_ flags:flags32:TIMER_ time:ptr remainder:ptr"},
    Signature{"clone", "flags:flags32:CLONE_,SIG stack:ptr parent:ptr child:ptr tls:ptr"},
    Signature{"close", "fd:fd"},
    Signature{"close_range", "first:fd last:fd flags:flags32:CLOSE_RANGE_"},
    Signature{"connect", "fd:fd address:ptr length:count32"},
    Signature{"dup", "fd:fd"},
    Signature{"dup2", "fd:fd target:fd"},
    Signature{"dup3", "fd:fd target:fd flags:flags32:O_"},
    Signature{"epoll_create1", "flags:flags32:EPOLL_"},
    Signature{"epoll_ctl", "epoll:fd op:flags32:EPOLL_CTL_ fd:fd event:ptr"},
    Signature{"epoll_pwait",
              "epoll:fd events:ptr maximum:count32 timeout:count32 mask:ptr size:count64"},
    Signature{"epoll_wait", "epoll:fd events:ptr maximum:count32 timeout:count32"},
    Signature{"eventfd2", "value:count32 flags:flags32:EFD_"},
    Signature{"exit", "code:count32"},
    Signature{"exit_group", "code:count32"},
    Signature{"fallocate", "fd:fd mode:flags32:FALLOC_ offset:count64 length:count64"},
    Signature{"fcntl", "fd:fd command:flags32:F_ value:count64"},
    Signature{"fdatasync", "fd:fd"},
    Signature{"flock", "fd:fd op:flags32:LOCK_"},
    Signature{"fstat", "fd:fd stat:ptr"},
    Signature{"fsync", "fd:fd"},
    Signature{"ftruncate", "fd:fd length:count64"},
    Signature{"futex",
              "word:ptr op:flags32:FUTEX_ value:count32 time:ptr word2:ptr value3:count32"},
    Signature{"getrandom", "buffer:ptr length:count64 flags:flags32:GRND_"},
    Signature{"getsockname", "fd:fd address:ptr length:ptr"},
    Signature{"getsockopt",
              "fd:fd level:flags32:SOL_,IPPROTO_ name:flags32:SO_,TCP_ value:ptr length:ptr"},
    Signature{"ioctl", "fd:fd command:flags32:TUN,TIOC,FIO,SIOC,TC,KVM_ value:ptr"},
    Signature{"kill", "pid:count32 sig:flags32:SIG"},
    Signature{"listen", "fd:fd backlog:count32"},
    Signature{"lseek", "fd:fd offset:count64 whence:flags32:SEEK_"},
    Signature{"madvise", "address:ptr length:count64 advice:flags32:MADV_"},
    Signature{"memfd_create", "name:ptr flags:flags32:MFD_"},
    Signature{"mlock2", "address:ptr length:count64 flags:flags32:MLOCK_"},
    Signature{
        "mmap",
        "address:ptr length:count64 prot:flags32:PROT_ flags:flags32:MAP_ fd:fd offset:count64"},
    Signature{"mprotect", "address:ptr length:count64 prot:flags32:PROT_"},
    Signature{
        "mremap",
        "address:ptr old_length:count64 new_length:count64 flags:flags32:MREMAP_ new_address:ptr"},
    Signature{"munmap", "address:ptr length:count64"},
    Signature{"open", "path:ptr flags:flags32:O_ mode:count32"},
    Signature{"openat", "directory:fd path:ptr flags:flags32:O_ mode:count32"},
    Signature{"pipe2", "fds:ptr flags:flags32:O_"},
    Signature{"pkey_mprotect", "address:ptr length:count64 prot:flags32:PROT_ key:count32"},
    Signature{"poll", "fds:ptr count:count32 timeout:count32"},
    Signature{"ppoll", "fds:ptr count:count32 timeout:ptr mask:ptr size:count64"},
    Signature{"prctl",
              "option:flags32:PR_ value:count64 value2:count64 value3:count64 value4:count64"},
    Signature{"pread64", "fd:fd buffer:ptr length:count64 offset:count64"},
    Signature{"preadv", "fd:fd vector:ptr count:count64 offset:count64"},
    Signature{"prlimit64", "pid:count32 resource:flags32:RLIMIT_ new:ptr old:ptr"},
    Signature{"pwrite64", "fd:fd buffer:ptr length:count64 offset:count64"},
    Signature{"pwritev", "fd:fd vector:ptr count:count64 offset:count64"},
    Signature{"read", "fd:fd buffer:ptr length:count64"},
    Signature{"readv", "fd:fd vector:ptr count:count64"},
    Signature{"recvfrom",
              "fd:fd buffer:ptr length:count64 flags:flags32:MSG_ address:ptr size:ptr"},
    Signature{"recvmsg", "fd:fd message:ptr flags:flags32:MSG_"},
    Signature{"rt_sigaction", "sig:flags32:SIG new:ptr old:ptr size:count64"},
    Signature{"rt_sigprocmask", "how:flags32:SIG_ new:ptr old:ptr size:count64"},
    Signature{"seccomp", "operation:flags32:SECCOMP_ flags:flags32:SECCOMP_ argument:ptr"},
    Signature{"sendmsg", "fd:fd message:ptr flags:flags32:MSG_"},
    Signature{"sendto",
              "fd:fd buffer:ptr length:count64 flags:flags32:MSG_ address:ptr size:count32"},
    Signature{"setns", "fd:fd type:flags32:CLONE_"},
    Signature{"setsockopt",
              "fd:fd level:flags32:SOL_,IPPROTO_ name:flags32:SO_,TCP_ value:ptr length:count32"},
    Signature{"shutdown", "fd:fd how:flags32:SHUT_"},
    Signature{"signalfd4", "fd:fd mask:ptr size:count64 flags:flags32:SFD_"},
    Signature{"socket", "domain:flags32:AF_ type:flags32:SOCK_ protocol:count32"},
    Signature{"socketpair", "domain:flags32:AF_ type:flags32:SOCK_ protocol:count32 fds:ptr"},
    Signature{"tgkill", "group:count32 thread:count32 sig:flags32:SIG"},
    Signature{"timerfd_create", "clock:flags32:CLOCK_ flags:flags32:TFD_"},
    Signature{"timerfd_settime", "fd:fd flags:flags32:TFD_ new:ptr old:ptr"},
    Signature{"tkill", "thread:count32 sig:flags32:SIG"},
    Signature{"umount2", "path:ptr flags:flags32:MNT_,UMOUNT_"},
    Signature{"unshare", "flags:flags32:CLONE_"},
    Signature{"wait4", "pid:count32 status:ptr options:flags32:W usage:ptr"},
    Signature{"waitid", "which:flags32:P_ id:count32 info:ptr options:flags32:W usage:ptr"},
    Signature{"write", "fd:fd buffer:ptr length:count64"},
    Signature{"writev", "fd:fd vector:ptr count:count64"},
};

Argument parseArgument(const std::string& text, unsigned index) {
  std::istringstream parts(text);
  Argument argument;
  std::string kind;
  std::string prefixes;
  std::getline(parts, argument.name, ':');
  std::getline(parts, kind, ':');
  std::getline(parts, prefixes);
  argument.index = index;
  argument.width = kind == "ptr" || kind.ends_with("64") ? 64 : 32;
  if (kind == "fd") {
    argument.kind = ArgumentKind::FD;
  } else if (kind.starts_with("count")) {
    argument.kind = ArgumentKind::COUNT;
  } else if (kind.starts_with("flags")) {
    argument.kind = ArgumentKind::FLAGS;
  }
  std::istringstream list(prefixes);
  for (std::string prefix; std::getline(list, prefix, ',');) {
    argument.prefixes.push_back(prefix);
  }
  return argument;
}

std::map<std::string, std::vector<Argument>> readSignatures() {
  std::map<std::string, std::vector<Argument>> table;
  for (const auto& signature : SIGNATURES) {
    auto& arguments = table[signature.call];
    std::istringstream words(signature.arguments);
    for (std::string word; words >> word;) {
      arguments.push_back(parseArgument(word, static_cast<unsigned>(arguments.size())));
    }
  }
  return table;
}

}  // namespace

std::optional<int> callNumber(const std::string& name) {
  const int number = seccomp_syscall_resolve_name_arch(SCMP_ARCH_NATIVE, name.c_str());
  // Negative numbers are libseccomp's pseudo calls: known by name elsewhere, absent on this
  // architecture.
  return number < 0 ? std::nullopt : std::optional(number);
}

std::optional<std::string> callName(int number) {
  char* name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
  if (name == nullptr) {
    return std::nullopt;
  }
  std::string text = name;
  std::free(name);
  return text;
}

const std::vector<Argument>& argumentsOf(const std::string& call) {
  static const auto TABLE = readSignatures();
  static const std::vector<Argument> NONE;
  const auto entry = TABLE.find(call);
  return entry == TABLE.end() ? NONE : entry->second;
}

}  // namespace cordon::policy::compiler
