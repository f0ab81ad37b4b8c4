// cordon-policy-victim FILTER.bpf FATE: confines itself as a service does and then meets one fate.
// It is built without sanitizers in every build, so that the policy which is shipped can be tried
// on it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr int CANNOT_PREPARE = 98;
constexpr rlim_t ADDRESS_SPACE = rlim_t{256} << 20;
constexpr std::size_t BEYOND_IT = std::size_t{1} << 30;
constexpr std::size_t LARGE_BLOCK = std::size_t{4} << 20;

// Where the compiler must assume that somebody looks at a block, so that it allocates it.
void* volatile block = nullptr;

[[noreturn]] void refuse(const char* what) {
  std::perror(what);
  std::_Exit(CANNOT_PREPARE);
}

void confine(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.empty()) {
    refuse(path);
  }
  std::vector<sock_filter> program(bytes.size() / sizeof(sock_filter));
  std::memcpy(program.data(), bytes.data(), program.size() * sizeof(sock_filter));
  const rlimit memory{ADDRESS_SPACE, ADDRESS_SPACE};
  const rlimit core{0, 0};
  // As common/sandbox does.
  mallopt(M_ARENA_MAX, 1);
  if (setrlimit(RLIMIT_AS, &memory) != 0 || setrlimit(RLIMIT_CORE, &core) != 0 ||
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
    refuse("prepare");
  }
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) != 0) {
    refuse("seccomp");
  }
}

// Takes many small blocks until there are no more: the heap ends by brk, then by mmap.
bool exhaustsMemory() {
  struct Block {
    Block* next;
    char filler[1000];
  };
  Block* blocks = nullptr;
  bool isExhausted = false;
  while (!isExhausted) {
    auto* another = new (std::nothrow) Block{blocks, {}};
    isExhausted = another == nullptr;
    if (!isExhausted) {
      blocks = another;
    }
  }
  while (blocks != nullptr) {
    auto* next = blocks->next;
    delete blocks;
    blocks = next;
  }
  return isExhausted;
}

bool resizesLargeBlocks() {
  auto* small = static_cast<char*>(std::malloc(LARGE_BLOCK));
  if (small == nullptr) {
    return false;
  }
  small[LARGE_BLOCK - 1] = 'x';
  auto* larger = static_cast<char*>(std::realloc(small, LARGE_BLOCK * 8));
  if (larger == nullptr) {
    return false;
  }
  const bool isSame = larger[LARGE_BLOCK - 1] == 'x';
  std::free(larger);
  return isSame;
}

int meet(std::string_view fate) {
  volatile std::size_t beyond = BEYOND_IT;
  if (fate == "abort") {
    std::abort();
  }
  if (fate == "terminate") {
    throw std::runtime_error("what the operator has to read");
  }
  if (fate == "bad-alloc") {
    block = ::operator new(beyond);
    return 1;
  }
  if (fate == "caught-bad-alloc") {
    try {
      block = ::operator new(beyond);
      return 1;
    } catch (const std::bad_alloc&) {
      return 0;
    }
  }
  if (fate == "exhaustion") {
    return exhaustsMemory() ? 0 : 1;
  }
  if (fate == "realloc") {
    return resizesLargeBlocks() ? 0 : 1;
  }
  if (fate == "clock") {
    timespec now{};
    // Not through the vDSO, which a virtual machine's clock may rule out.
    return static_cast<int>(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now));
  }
  if (fate == "double-free") {
    block = std::malloc(BEYOND_IT >> 14);
    std::free(block);
    std::free(block);
    return 1;
  }
  if (fate == "overflow") {
    char buffer[8];
    volatile std::size_t length = 64;
    std::memset(buffer, 'x', length);
    return buffer[7] == 'x' ? 1 : 2;
  }
  if (fate == "segmentation-fault") {
    volatile int* nothing = nullptr;
    return *nothing;
  }
  if (fate == "exit") {
    std::exit(0);
  }
  return CANNOT_PREPARE;
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): an exception that nobody catches is one of the fates
int main(int argc, char** argv) {
  if (argc != 3) {
    return CANNOT_PREPARE;
  }
  confine(argv[1]);
  return meet(argv[2]);
}
