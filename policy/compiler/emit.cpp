#include "policy/compiler/emit.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include <openssl/evp.h>

namespace cordon::policy::compiler {
namespace {

constexpr std::string_view BOOT_MARK = "boot: ";

std::string arrayText(const std::string& name, const Program& program) {
  std::ostringstream text;
  text << "constexpr sock_filter " << name << "[] = {\n";
  for (const auto& instruction : program) {
    text << "    {" << instruction.code << ", " << unsigned{instruction.jt} << ", "
         << unsigned{instruction.jf} << ", " << instruction.k << "},\n";
  }
  text << "};\n\n";
  return text.str();
}

// Backticks around each line, '|' escaped, <br> between them.
std::string cell(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) {
    text += text.empty() ? "`" : "<br>`";
    for (const char c : line) {
      text += c == '|' ? "\\|" : std::string(1, c);
    }
    text += '`';
  }
  return text;
}

}  // namespace

std::string expandedText(const CompiledPolicy& policy) {
  std::string text;
  for (const auto& stage : policy.stages) {
    text += "policy " + policy.name + " / stage " + stage.name;
    text += policy.with.empty() ? "\n" : " / with " + policy.with + '\n';
    for (const auto& rule : stage.rules) {
      text += rule.line + '\n';
    }
  }
  return text;
}

std::string constantName(const std::string& policy) {
  std::string name;
  for (const char c : policy) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

std::string sha256Hex(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &length, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("SHA-256 failed");
  }
  static constexpr char DIGITS[] = "0123456789abcdef";
  std::string hex;
  for (unsigned i = 0; i < length; ++i) {
    hex += DIGITS[digest[i] >> 4];
    hex += DIGITS[digest[i] & 15];
  }
  return hex;
}

std::string headerText(const CompiledPolicy& policy) {
  const auto name = constantName(policy.name);
  return "// Written by cordon-policyc from policy/seccomp/" + policy.name +
         ".policy.\n#pragma once\n\n#include \"common/sandbox/policy.h\"\n\nnamespace "
         "cordon::policy {\n\n"
         "extern const sandbox::Policy " +
         name + ";\n\n}  // namespace cordon::policy\n";
}

std::string sourceText(const CompiledPolicy& policy, const std::vector<Filter>& filters) {
  std::string bytes;
  std::string arrays;
  bool hasBoot = false;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    bytes += bytesOf(filters[i].program);
    const bool isBoot = policy.stages[i].name == "boot";
    hasBoot = hasBoot || isBoot;
    arrays += arrayText(isBoot ? "BOOT" : "RUN", filters[i].program);
  }
  return "// Written by cordon-policyc from policy/seccomp/" + policy.name +
         ".policy.\n#include \"policy/compiled/" + policy.name +
         ".h\"\n\nnamespace cordon::policy {\nnamespace {\n\n" + arrays +
         "}  // namespace\n\nconst sandbox::Policy " + constantName(policy.name) + " = {\n    \"" +
         policy.name + "\",\n    RUN,\n    " + (hasBoot ? "BOOT" : "{}") + ",\n    R\"expanded(" +
         expandedText(policy) + ")expanded\",\n    \"" + sha256Hex(bytes) +
         "\",\n};\n\n}  // namespace cordon::policy\n";
}

std::vector<std::string> changeLines(const CompiledPolicy& policy) {
  std::vector<std::string> lines;
  for (const auto& stage : policy.stages) {
    for (const auto& rule : stage.rules) {
      lines.push_back(stage.name == "boot" ? std::string(BOOT_MARK) + rule.line : rule.line);
    }
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::string expandedFrom(const std::string& name, std::vector<std::string> lines) {
  std::sort(lines.begin(), lines.end());
  std::string boot;
  std::string run;
  for (const auto& line : lines) {
    if (line.starts_with(BOOT_MARK)) {
      boot += line.substr(BOOT_MARK.size()) + '\n';
    } else {
      run += line + '\n';
    }
  }
  if (!boot.empty()) {
    boot = "policy " + name + " / stage boot\n" + boot;
  }
  return run.empty() ? boot : boot + "policy " + name + " / stage run\n" + run;
}

std::string changeRow(std::size_t number, const CompiledPolicy& before,
                      const CompiledPolicy& after) {
  const auto old = changeLines(before);
  const auto current = changeLines(after);
  std::vector<std::string> removed;
  std::vector<std::string> added;
  std::set_difference(old.begin(), old.end(), current.begin(), current.end(),
                      std::back_inserter(removed));
  std::set_difference(current.begin(), current.end(), old.begin(), old.end(),
                      std::back_inserter(added));
  return "| " + std::to_string(number) + " | " + after.name + " | " + cell(removed) + " | " +
         cell(added) + " | REASON | TEST | " + sha256Hex(expandedText(after)).substr(0, 12) +
         " |\n";
}

}  // namespace cordon::policy::compiler
