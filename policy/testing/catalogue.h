#pragma once

#include <span>
#include <string_view>

// What a lost process would try first. Each attempt is one system call, or one way of making one.
namespace cordon::policy::testing {

struct Attempt {
  const char* name;
  // Makes the attempt; the kernel's answer, negative for an error. System calls only: no heap, no
  // library.
  long (*run)();
  // The attempt works for an ordinary process on any kernel: the control must see it succeed.
  // Without the mark the control only shows that nothing but a filter kills for it.
  bool succeedsUnconfined = false;
  // Policies that allow it, by their GRANTS, and are not tried; separated by spaces.
  std::string_view grantedTo = {};
  // A sanitizer's run-time library needs it, so that a build with one lets it through.
  bool neededBySanitizers = false;
};

std::span<const Attempt> catalogue();

}  // namespace cordon::policy::testing
