#include "policy/testing/catalogue.h"

#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cordon::policy::testing {
namespace {

constexpr long X32_BIT = 0x40000000;
constexpr std::size_t PAGE = 4096;
char page[PAGE * 2];

template <typename... Arguments>
long call(long number, Arguments... arguments) {
  return syscall(number, arguments...);
}

long execve() {
  const char* const arguments[] = {"/bin/true", nullptr};
  return call(SYS_execve, arguments[0], arguments, nullptr);
}

long execveat() {
  const char* const arguments[] = {"/bin/true", nullptr};
  return call(SYS_execveat, AT_FDCWD, arguments[0], arguments, nullptr, 0);
}

long sendDescriptor() {
  char control[CMSG_SPACE(sizeof(int))] = {};
  char byte = 0;
  iovec vector{&byte, 1};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  auto* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  return call(SYS_sendmsg, 0, &message, 0);
}

long int80() {
#if defined(__x86_64__)
  long result = 0;
  constexpr long GETPID_OF_I386 = 20;
  asm volatile("int $0x80"
               : "=a"(result)
               : "a"(GETPID_OF_I386)
               : "memory", "r8", "r9", "r10", "r11");
  return result;
#else
  return -1;
#endif
}

long cloneFlags(unsigned long flags) {
  const long child = call(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    call(SYS_exit_group, 0);
  }
  return child;
}

const Attempt CATALOGUE[] = {
    // Another program, another process.
    {"execve", execve, true},
    {"execveat", execveat, true},
    {"fork", [] { return cloneFlags(0); }, true},
    {"clone-newuser", [] { return cloneFlags(CLONE_NEWUSER); }},
    {"clone-newnet", [] { return cloneFlags(CLONE_NEWNET); }},
    {"clone-thread",
     [] { return call(SYS_clone, CLONE_THREAD | CLONE_SIGHAND | CLONE_VM, 0, 0, 0, 0); }},
    {"clone3", [] { return call(SYS_clone3, nullptr, 0); }},
    {"x32-fork", [] { return call(SYS_fork | X32_BIT); }},
    {"ptrace", [] { return call(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0); }, true},
    {"process-vm-readv",
     [] { return call(SYS_process_vm_readv, getppid(), nullptr, 0, nullptr, 0, 0); }},
    {"process-vm-writev",
     [] { return call(SYS_process_vm_writev, getppid(), nullptr, 0, nullptr, 0, 0); }},
    {"kill", [] { return call(SYS_kill, 0, 0); }, true},
    {"tgkill-term", [] { return call(SYS_tgkill, 1, 1, SIGTERM); }},
    {"tgkill-abort-with-garbage-elsewhere", [] { return call(SYS_tgkill, 1, 1, SIGABRT | 0x100); }},
    {"rt-sigqueueinfo", [] { return call(SYS_rt_sigqueueinfo, 1, 0, nullptr); }},
    {"pidfd-open", [] { return call(SYS_pidfd_open, getppid(), 0); }, true},
    {"pidfd-getfd", [] { return call(SYS_pidfd_getfd, -1, 0, 0); }},
    {"pidfd-send-signal", [] { return call(SYS_pidfd_send_signal, -1, SIGKILL, nullptr, 0); }},
    {"kcmp", [] { return call(SYS_kcmp, 1, 1, 0, 0, 0); }},
    // Networks.
    {"socket-inet", [] { return call(SYS_socket, AF_INET, SOCK_STREAM, 0); }, true},
    {"socket-inet6", [] { return call(SYS_socket, AF_INET6, SOCK_STREAM, 0); }},
    {"socket-inet-udp", [] { return call(SYS_socket, AF_INET, SOCK_DGRAM, 0); }, true},
    {"socket-vsock", [] { return call(SYS_socket, AF_VSOCK, SOCK_STREAM, 0); }},
    {"socket-netlink", [] { return call(SYS_socket, AF_NETLINK, SOCK_RAW, 0); }, true},
    {"socket-packet", [] { return call(SYS_socket, AF_PACKET, SOCK_RAW, 0); }},
    {"socket-alg", [] { return call(SYS_socket, AF_ALG, SOCK_SEQPACKET, 0); }},
    {"socket-unix-dgram", [] { return call(SYS_socket, AF_UNIX, SOCK_DGRAM, 0); }, true},
    {"socket-inet-with-upper-half",
     [] { return call(SYS_socket, AF_INET | (1L << 32), SOCK_STREAM, 0); }, true},
    {"socketpair", [] { return call(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, page); }, true},
    {"bind", [] { return call(SYS_bind, 0, nullptr, 0); }},
    {"listen", [] { return call(SYS_listen, 0, 1); }},
    {"accept", [] { return call(SYS_accept, 0, nullptr, nullptr); }},
    {"send-descriptor", sendDescriptor},
    {"sendmmsg", [] { return call(SYS_sendmmsg, 0, nullptr, 0, 0); }},
    {"recvmmsg", [] { return call(SYS_recvmmsg, 0, nullptr, 0, 0, nullptr); }},
    {"setsockopt-attach-filter",
     [] { return call(SYS_setsockopt, 0, SOL_SOCKET, SO_ATTACH_FILTER, nullptr, 0); }},
    // Files.
    {"open", [] { return call(SYS_open, "/etc/passwd", O_RDONLY); }, true, {}, true},
    {"openat-read",
     [] { return call(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY); },
     true,
     {},
     true},
    {"openat-write", [] { return call(SYS_openat, AT_FDCWD, "/tmp", O_WRONLY | O_TMPFILE, 0600); }},
    {"openat2", [] { return call(SYS_openat2, AT_FDCWD, "/etc/passwd", nullptr, 0); }},
    {"creat", [] { return call(SYS_creat, "/proc/cordon", 0600); }},
    {"name-to-handle-at",
     [] { return call(SYS_name_to_handle_at, AT_FDCWD, "/", nullptr, nullptr, 0); }},
    {"open-by-handle-at", [] { return call(SYS_open_by_handle_at, AT_FDCWD, nullptr, O_RDONLY); }},
    {"unlink", [] { return call(SYS_unlink, "/proc/cordon"); }},
    {"mkdir", [] { return call(SYS_mkdir, "/proc/cordon", 0700); }},
    {"symlink", [] { return call(SYS_symlink, "/", "/proc/cordon"); }},
    {"link", [] { return call(SYS_link, "/proc/version", "/proc/cordon"); }},
    {"rename", [] { return call(SYS_rename, "/proc/version", "/proc/cordon"); }},
    {"chmod", [] { return call(SYS_chmod, "/proc/version", 0777); }},
    {"mknod", [] { return call(SYS_mknod, "/proc/cordon", 0600, 0); }},
    {"getdents", [] { return call(SYS_getdents64, 0, page, sizeof(page)); }},
    {"statx", [] { return call(SYS_statx, AT_FDCWD, "/", 0, 0, page); }, true},
    {"memfd-create", [] { return call(SYS_memfd_create, "cordon", MFD_CLOEXEC); }, true},
    {"inotify-init", [] { return call(SYS_inotify_init1, 0); }, true},
    {"fanotify-init", [] { return call(SYS_fanotify_init, 0, 0); }},
    {"dup2", [] { return call(SYS_dup2, 0, 100); }},
    {"ioctl-tiocsti", [] { return call(SYS_ioctl, 0, TIOCSTI, ""); }},
    {"ioctl-tiocsti-with-upper-half", [] { return call(SYS_ioctl, 0, TIOCSTI | (1L << 32), ""); }},
    // New code.
    {"mmap-exec",
     [] {
       return call(SYS_mmap, 0, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
     },
     true},
    {"mmap-write-exec",
     [] {
       return call(SYS_mmap, 0, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
     },
     true},
    {"mprotect-exec",
     [] {
       return call(SYS_mprotect, reinterpret_cast<std::uintptr_t>(page) & ~(PAGE - 1), PAGE,
                   PROT_READ | PROT_WRITE | PROT_EXEC);
     },
     true},
    {"pkey-mprotect", [] { return call(SYS_pkey_mprotect, 0, 0, PROT_EXEC, -1); }, true},
    {"shmat", [] { return call(SYS_shmat, -1, nullptr, 0); }},
    {"shmget", [] { return call(SYS_shmget, 0, PAGE, 0600); }},
    {"remap-file-pages", [] { return call(SYS_remap_file_pages, 0, 0, 0, 0, 0); }},
    // The kernel's larger interfaces, and the confinement itself.
    {"mount", [] { return call(SYS_mount, "none", "/proc", "tmpfs", 0, nullptr); }},
    {"umount", [] { return call(SYS_umount2, "/proc/cordon", 0); }},
    {"move-mount", [] { return call(SYS_move_mount, -1, "", -1, "", 0); }},
    {"open-tree", [] { return call(SYS_open_tree, AT_FDCWD, "/proc/cordon", 0); }},
    {"fsopen", [] { return call(SYS_fsopen, "cordon", 0); }},
    {"pivot-root", [] { return call(SYS_pivot_root, "/proc/cordon", "/proc/cordon"); }},
    {"chroot", [] { return call(SYS_chroot, "/proc/cordon"); }},
    {"setns", [] { return call(SYS_setns, 0, 0); }},
    {"unshare-user", [] { return call(SYS_unshare, CLONE_NEWUSER); }},
    {"unshare-net", [] { return call(SYS_unshare, CLONE_NEWNET); }},
    {"bpf", [] { return call(SYS_bpf, BPF_MAP_CREATE, nullptr, 0); }},
    {"keyctl", [] { return call(SYS_keyctl, 0, 0, 0, 0, 0); }},
    {"add-key", [] { return call(SYS_add_key, nullptr, nullptr, nullptr, 0, 0); }},
    {"io-uring-setup", [] { return call(SYS_io_uring_setup, 1, nullptr); }},
    {"userfaultfd", [] { return call(SYS_userfaultfd, O_CLOEXEC); }},
    {"perf-event-open", [] { return call(SYS_perf_event_open, nullptr, 0, 0, -1, 0); }},
    {"seccomp", [] { return call(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, nullptr); }},
    {"prctl-dumpable", [] { return call(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0); }, true},
    {"prctl-name", [] { return call(SYS_prctl, PR_SET_NAME, "sshd", 0, 0, 0); }, true},
    {"prlimit", [] { return call(SYS_prlimit64, 0, 0, nullptr, nullptr); }, true, {}, true},
    {"setuid", [] { return call(SYS_setuid, 0); }},
    {"setgroups", [] { return call(SYS_setgroups, 0, nullptr); }},
    {"capset", [] { return call(SYS_capset, nullptr, nullptr); }},
    {"personality", [] { return call(SYS_personality, 0xffffffff); }, true},
    {"modify-ldt", [] { return call(SYS_modify_ldt, 0, nullptr, 0); }},
    {"init-module", [] { return call(SYS_init_module, nullptr, 0, nullptr); }},
    {"kexec-load", [] { return call(SYS_kexec_load, 0, 0, nullptr, 0); }},
    {"quotactl", [] { return call(SYS_quotactl, 0, nullptr, 0, nullptr); }},
    {"syslog", [] { return call(SYS_syslog, 10, nullptr, 0); }},
    {"sched-setaffinity", [] { return call(SYS_sched_setaffinity, 0, 0, nullptr); }},
    // The same calls by another door.
    {"x32-write", [] { return call(SYS_write | X32_BIT, 2, nullptr, 0); }},
    {"x32-socket", [] { return call(SYS_socket | X32_BIT, AF_UNIX, SOCK_STREAM, 0); }},
    {"int80", int80},
    {"number-minus-one", [] { return call(-1L); }},
    {"number-past-the-last", [] { return call(100000L); }},
};

}  // namespace

std::span<const Attempt> catalogue() {
  return CATALOGUE;
}

}  // namespace cordon::policy::testing
