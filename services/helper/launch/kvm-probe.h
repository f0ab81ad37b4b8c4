// Whether KVM can boot a kernel here in a reasonable time, found out by trying.
//
// A /dev/kvm that opens proves little: nested KVM may take milliseconds for each page that a guest
// touches first, and a kernel then seems to hang. So the probe runs a virtual CPU that touches
// PROBE_MEMORY, page by page, and gives it a deadline.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "services/helper/launch/unique-fd.h"

namespace cordon::launch {

inline constexpr std::size_t PROBE_MEMORY =
    32u << 20;  // bytes; some ten milliseconds' work on real hardware
inline constexpr std::chrono::milliseconds PROBE_DEADLINE{1500};

struct KvmProbe {
  bool usable = false;
  std::string why;  // where it is not
};

KvmProbe probeKvm(const std::string& device = "/dev/kvm",
                  std::chrono::milliseconds deadline = PROBE_DEADLINE);

}  // namespace cordon::launch
