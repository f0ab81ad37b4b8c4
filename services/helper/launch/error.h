// What can go wrong in cordon-launch: a code for programs, the step, what it acted on and errno for
// people.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace cordon::launch {

enum class Code : std::uint8_t {
  USAGE,           // unknown verb or option, a value that is missing or given twice
  BAD_ARGUMENT,    // a value out of its bounds
  NOT_ROOT,        // cells need root
  IMAGE_MISSING,   // kernel or initrd: absent, not a regular file, or not readable by everyone
  BINARY_MISSING,  // cordon-vsock, cordon-parser or the VMM: absent or not executable
  KVM_MISSING,     // --accel kvm, and it is absent or too slow to boot a kernel
  UID_BUSY,        // a process runs under the uid that the plan assigns
  GUEST_EXISTS,    // another launcher holds this guest's directory
  STEP_FAILED,     // a system call failed in a step
  CELL_DIED,       // a cell ended before its program ran
};
std::string_view name(Code code);  // "usage", "bad-argument", …

class LaunchError : public std::exception {
 public:
  // step: the verb that failed; subject: path, option or uid; errnoValue: 0 where no system call
  // failed.
  LaunchError(Code errorCode, std::string stepName, std::string subjectText, int errnoValue = 0,
              std::string why = {});
  [[nodiscard]] const char* what() const noexcept override { return text.c_str(); }

  Code code;
  std::string step;
  std::string subject;
  int error;
  std::string reason;

 private:
  std::string text;  // "uid-busy: step refuse-busy-uid: uid 1879058192: held by process 7"
};

// Throws STEP_FAILED with the current errno.
[[noreturn]] void failStep(std::string_view step, std::string_view subject);

}  // namespace cordon::launch
