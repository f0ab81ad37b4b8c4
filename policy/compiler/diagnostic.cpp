#include "policy/compiler/diagnostic.h"

namespace cordon::policy::compiler {

std::string describe(const Diagnostic& diagnostic) {
  const auto& place = diagnostic.place;
  std::string text = place.file;
  if (place.line != 0) {
    text += ':' + std::to_string(place.line) + ':' + std::to_string(place.column);
  }
  return text + ": error: " + diagnostic.message + "\n  remedy: " + diagnostic.remedy;
}

}  // namespace cordon::policy::compiler
