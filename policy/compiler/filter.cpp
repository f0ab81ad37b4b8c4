#include "policy/compiler/filter.h"

#include <cstring>
#include <memory>
#include <sys/mman.h>
#include <system_error>
#include <type_traits>
#include <unistd.h>

#include <seccomp.h>

#include "policy/compiler/evaluator.h"

namespace cordon::policy::compiler {
namespace {

using Context = std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, decltype(&seccomp_release)>;

void check(int result, const char* what) {
  if (result < 0) {
    throw std::system_error(-result, std::generic_category(), what);
  }
}

std::vector<scmp_arg_cmp> comparisonsOf(const Cube& cube) {
  std::vector<scmp_arg_cmp> comparisons;
  for (std::size_t i = 0; i < cube.mask.size(); ++i) {
    if (cube.mask[i] != 0) {
      comparisons.push_back(
          {static_cast<unsigned>(i), SCMP_CMP_MASKED_EQ, cube.mask[i], cube.value[i]});
    }
  }
  return comparisons;
}

void addRules(scmp_filter_ctx context, const CallRule& rule) {
  if (rule.error) {
    const auto answer = SCMP_ACT_ERRNO(static_cast<std::uint16_t>(*rule.error));
    check(seccomp_rule_add_exact_array(context, answer, rule.number, 0, nullptr),
          rule.line.c_str());
    return;
  }
  for (const auto& cube : rule.cubes) {
    const auto comparisons = comparisonsOf(cube);
    const int result =
        seccomp_rule_add_exact_array(context, SCMP_ACT_ALLOW, rule.number,
                                     static_cast<unsigned>(comparisons.size()), comparisons.data());
    // EEXIST: libseccomp has found that another rule says the same already. The comparison
    // afterwards proves it right.
    if (result != -EEXIST) {
      check(result, rule.line.c_str());
    }
  }
}

// Runs an exporter, which wants a descriptor, and gives back what it wrote.
template <typename Export>
std::string exported(scmp_filter_ctx context, Export exporter, const char* what) {
  const int fd = memfd_create("filter", MFD_CLOEXEC);
  if (fd < 0) {
    throw std::system_error(errno, std::generic_category(), "memfd_create");
  }
  const int result = exporter(context, fd);
  std::string text(static_cast<std::size_t>(lseek(fd, 0, SEEK_END)), '\0');
  const auto length = pread(fd, text.data(), text.size(), 0);
  close(fd);
  check(result, what);
  if (length != static_cast<ssize_t>(text.size())) {
    throw std::runtime_error("a short read of the filter");
  }
  return text;
}

}  // namespace

Filter buildFilter(const CompiledStage& stage, const Place& place, Diagnostics& faults) {
  const Context context(seccomp_init(SCMP_ACT_KILL_PROCESS), seccomp_release);
  if (!context) {
    throw std::bad_alloc();
  }
  check(seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS),
        "bad architecture");
  for (const auto& rule : stage.rules) {
    addRules(context.get(), rule);
  }
  Filter filter;
  filter.program = programFrom(exported(context.get(), seccomp_export_bpf, "seccomp_export_bpf"));
  filter.pseudoCode = exported(context.get(), seccomp_export_pfc, "seccomp_export_pfc");
  if (filter.program.size() > BPF_MAXINSNS) {
    faults.push_back(
        {Fault::FILTER_TOO_LONG, place,
         "stage " + stage.name + " needs " + std::to_string(filter.program.size()) +
             " instructions",
         "the kernel takes " + std::to_string(BPF_MAXINSNS) + ": test fewer arguments with '!='"});
  } else if (const auto difference = findDifference(filter.program, stage.meaning)) {
    faults.push_back(
        {Fault::FILTER_DIFFERS, place,
         "the filter does not say what the policy says: " + describeDifference(*difference),
         "a fault in the code generator: do not ship it"});
  }
  return filter;
}

std::string bytesOf(const Program& program) {
  std::string bytes(program.size() * sizeof(sock_filter), '\0');
  std::memcpy(bytes.data(), program.data(), bytes.size());
  return bytes;
}

Program programFrom(std::string_view bytes) {
  if (bytes.size() % sizeof(sock_filter) != 0) {
    throw std::runtime_error("a filter is a whole number of instructions");
  }
  Program program(bytes.size() / sizeof(sock_filter));
  std::memcpy(program.data(), bytes.data(), bytes.size());
  return program;
}

}  // namespace cordon::policy::compiler
