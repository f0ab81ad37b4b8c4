// What the codes of common/records/report.h mean to an operator.
#pragma once

#include <string_view>

#include "common/records/report.h"

namespace cordon::cli {

struct ReasonWords {
  std::string_view meaning;
  std::string_view remedy;
};
// Empty for NONE.
ReasonWords wordsOf(records::Reason reason);

std::string_view wordsOf(records::Finding finding);

}  // namespace cordon::cli
