#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What the names of a policy mean: system calls by libseccomp's table for the native architecture,
// their arguments and the constants by tables of our own. An author can therefore choose neither an
// index nor a width wrongly.
namespace cordon::policy::compiler {

enum class ArgumentKind {
  POINTER,  // cannot be tested: a filter sees the address, never what it points to
  FD,       // a descriptor: 32 bits, digits allowed
  COUNT,    // a size, a number, an identifier: digits allowed
  FLAGS,    // bits or an enumeration: named constants only
};

struct Argument {
  std::string name;
  unsigned index = 0;  // 0..5
  ArgumentKind kind = ArgumentKind::POINTER;
  // 32: the kernel reads an int or an unsigned int, and what stands in the upper half of the
  // register is undefined, so a test looks at the lower half only. 64: all of it counts.
  unsigned width = 64;
  std::vector<std::string> prefixes;  // of the constants that fit; empty: any
};

// The number of a call on the native architecture; nothing if libseccomp does not know the name
// there.
std::optional<int> callNumber(const std::string& name);

// The name of a call; nothing if the number is not assigned on the native architecture.
std::optional<std::string> callName(int number);

// The arguments whose names are known. Empty for a call that no policy has had a reason to test.
const std::vector<Argument>& argumentsOf(const std::string& call);

// A constant's value, sign-extended as C would convert it to the kernel's long.
std::optional<std::uint64_t> constantValue(std::string_view name);

}  // namespace cordon::policy::compiler
