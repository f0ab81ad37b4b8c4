#pragma once

#include <linux/filter.h>
#include <string>
#include <vector>

#include "policy/compiler/compile.h"

namespace cordon::policy::compiler {

using Program = std::vector<sock_filter>;

struct Filter {
  Program program;
  std::string pseudoCode;  // libseccomp's, for people
};

// Builds the filter of one stage with libseccomp: kill-process by default and for every foreign
// architecture, x32 included. The same stage always gives the same bytes. The result has been
// compared with the stage's meaning; a difference, or a program longer than the kernel takes, is a
// fault.
Filter buildFilter(const CompiledStage& stage, const Place& place, Diagnostics& faults);

// The bytes that the kernel is given.
std::string bytesOf(const Program& program);
Program programFrom(std::string_view bytes);

}  // namespace cordon::policy::compiler
