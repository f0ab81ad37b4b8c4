#pragma once

#include <cstdint>
#include <functional>
#include <linux/filter.h>
#include <optional>
#include <span>
#include <string>

#include "policy/compiler/meaning.h"

// A child process that confines itself by one filter and then makes one attempt.
namespace cordon::policy::testing {

// The wait(2) status of a child that runs `attempt` and exits with 0. With a filter, it has
// no_new_privs and nothing but that filter; without, it is the control. If root starts it, it
// becomes nobody, so that what is let through does no harm. It leaves no core, and SIGALRM ends it
// should the attempt block. `attempt` may make system calls only: no heap, no library.
int runChild(std::optional<std::span<const sock_filter>> filter,
             const std::function<void()>& attempt);

// The same for one call.
int runCall(std::optional<std::span<const sock_filter>> filter, long number,
            const compiler::Arguments& arguments);

// Whether the status says that SIGSYS, which a filter sends, was the death.
bool diedOfPolicy(int status);

// "exit 0", "signal 31"; for messages.
std::string describeStatus(int status);

}  // namespace cordon::policy::testing
