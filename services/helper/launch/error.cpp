#include "services/helper/launch/error.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace cordon::launch {

std::string_view name(Code code) {
  switch (code) {
    case Code::USAGE:
      return "usage";
    case Code::BAD_ARGUMENT:
      return "bad-argument";
    case Code::NOT_ROOT:
      return "not-root";
    case Code::IMAGE_MISSING:
      return "image-missing";
    case Code::BINARY_MISSING:
      return "binary-missing";
    case Code::KVM_MISSING:
      return "kvm-missing";
    case Code::UID_BUSY:
      return "uid-busy";
    case Code::GUEST_EXISTS:
      return "guest-exists";
    case Code::STEP_FAILED:
      return "step-failed";
    case Code::CELL_DIED:
      return "cell-died";
  }
  return "unknown";
}

LaunchError::LaunchError(Code errorCode, std::string stepName, std::string subjectText,
                         int errnoValue, std::string why)
    : code(errorCode),
      step(std::move(stepName)),
      subject(std::move(subjectText)),
      error(errnoValue),
      reason(std::move(why)) {
  text = std::string(name(code)) + ": step " + step + ": " + subject;
  if (!reason.empty()) text += ": " + reason;
  if (error != 0)
    text += std::string(": ") + strerrorname_np(error) + " (" + strerrordesc_np(error) + ")";
}

void failStep(std::string_view step, std::string_view subject) {
  int error = errno;
  throw LaunchError(Code::STEP_FAILED, std::string(step), std::string(subject), error);
}

}  // namespace cordon::launch
