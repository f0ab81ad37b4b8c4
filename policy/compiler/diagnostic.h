#pragma once

#include <string>
#include <vector>

namespace cordon::policy::compiler {

// Where something stands in a source: the file's name as given, line and column from 1. Line 0
// means the file itself.
struct Place {
  std::string file;
  unsigned line = 0;
  unsigned column = 0;
};

// Everything that the compiler refuses. One enumerator per rule of the language, so that a test can
// name the rule.
enum class Fault {
  CANNOT_READ,
  NON_ASCII,
  LINE_TOO_LONG,
  TOO_MANY_RULES,
  SYNTAX,
  NAME_MISMATCH,
  UNKNOWN_FRAGMENT,
  FRAGMENT_USES,
  FRAGMENT_HAS_STAGE,
  STAGE_ORDER,
  UNKNOWN_CALL,
  UNKNOWN_ARGUMENT,
  UNKNOWN_CONSTANT,
  UNFIT_CONSTANT,
  UNFIT_TEST,
  POINTER_ARGUMENT,
  ORDERING_TEST,
  ARGUMENT_TWICE,
  BARE_NUMBER,
  NEVER_MATCHES,
  MISSING_BECAUSE,
  BECAUSE_LENGTH,
  MISSING_TEST_NAME,
  UNKNOWN_ERRNO,
  ERRNO_CONDITION,
  ACTION_IS_DEFAULT,
  DUPLICATE_RULE,
  SHADOWED_RULE,
  CONTRADICTION,
  DANGEROUS_WITHOUT_GRANT,
  STALE_GRANT,
  MALFORMED_TABLE,
  NOT_CONTAINED,
  FILTER_TOO_LONG,
  FILTER_DIFFERS,
};

struct Diagnostic {
  Fault fault;
  Place place;
  std::string message;
  std::string remedy;
};

using Diagnostics = std::vector<Diagnostic>;

// "file:line:column: error: message" and, on a second line, what to do about it. No line feed at
// the end.
std::string describe(const Diagnostic& diagnostic);

}  // namespace cordon::policy::compiler
