#pragma once

#include <linux/filter.h>
#include <span>
#include <string_view>

namespace cordon::sandbox {

// A compiled seccomp policy, embedded by cordon-policyc (policy/README.md). Everything points to
// static storage.
struct Policy {
  std::string_view name;              // the policy's stem, e.g. "parser-channel"
  std::span<const sock_filter> run;   // what holds while the service serves
  std::span<const sock_filter> boot;  // what holds before; empty for a policy with one stage
  std::string_view expanded;          // canonical text, one call a line
  std::string_view sha256;            // 64 hex digits: SHA-256 over the bytes of boot, then run

  // What journals and status lines show.
  std::string_view shortHash() const { return sha256.substr(0, 12); }
};

}  // namespace cordon::sandbox
