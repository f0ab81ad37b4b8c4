#pragma once

#include <cstdint>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policy/compiler/meaning.h"

// The kernel's seccomp interpreter, in user space: what a filter answers, without killing anybody
// for it.
namespace cordon::policy::compiler {

// The SECCOMP_RET_* value; nothing for a program that the kernel would not load (an unknown
// instruction, a jump or a load out of bounds, no return).
std::optional<std::uint32_t> runFilter(std::span<const sock_filter> program,
                                       const seccomp_data& data);

// The architecture for which this was built, as AUDIT_ARCH_*.
std::uint32_t nativeArchitecture();

struct Probe {
  int number = 0;
  Arguments arguments{};
  std::uint32_t architecture = nativeArchitecture();
};

// Calls at which a filter could go wrong: every number from 0 to 600, x32 numbers, foreign
// architectures, and for each argument that the meaning tests the values that it names and each of
// their neighbours by one bit of 64.
std::vector<Probe> probesFor(const Meaning& meaning);

struct Difference {
  Probe probe;
  Decision wanted;
  std::optional<std::uint32_t> found;
};

// The first probe at which the program and the meaning differ; foreign architectures must kill the
// process.
std::optional<Difference> findDifference(std::span<const sock_filter> program,
                                         const Meaning& meaning);

std::string describeDifference(const Difference& difference);

}  // namespace cordon::policy::compiler
