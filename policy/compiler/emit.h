#pragma once

#include <string>
#include <vector>

#include "policy/compiler/compile.h"
#include "policy/compiler/filter.h"

// What the compiler writes for a policy. All of it depends on the policy's text alone.
namespace cordon::policy::compiler {

// "policy NAME / stage STAGE[ / with FRAGMENT]" and the sorted lines, for each stage.
std::string expandedText(const CompiledPolicy& policy);

// PARSER_CHANNEL for parser-channel.
std::string constantName(const std::string& policy);

// Lower hex digits of SHA-256.
std::string sha256Hex(std::string_view bytes);

// The header and the source that embed a policy as cordon::policy::NAME, a cordon::sandbox::Policy.
// `filters` are those of the policy's stages, in the same order.
std::string headerText(const CompiledPolicy& policy);
std::string sourceText(const CompiledPolicy& policy, const std::vector<Filter>& filters);

// The next row of CHANGES.md for a policy that was `before` (an expanded text, or empty) and is
// `after`.
std::string changeRow(std::size_t number, const CompiledPolicy& before,
                      const CompiledPolicy& after);

// The lines of a policy as CHANGES.md writes them: those of stage boot have "boot: " before them.
std::vector<std::string> changeLines(const CompiledPolicy& policy);

// The expanded text from such lines, sorted here.
std::string expandedFrom(const std::string& name, std::vector<std::string> lines);

}  // namespace cordon::policy::compiler
