#include "policy/compiler/evaluator.h"

#include <cstring>
#include <linux/audit.h>
#include <sstream>

namespace cordon::policy::compiler {
namespace {

constexpr int LAST_NUMBER = 600;
constexpr unsigned X32_BIT = 0x40000000;
constexpr std::uint32_t ARCHITECTURES[] = {AUDIT_ARCH_I386, AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64,
                                           0};
constexpr std::size_t MAX_INSTRUCTIONS = BPF_MAXINSNS;

bool jumpHolds(std::uint16_t operation, std::uint32_t accumulator, std::uint32_t operand) {
  switch (operation) {
    case BPF_JEQ:
      return accumulator == operand;
    case BPF_JGT:
      return accumulator > operand;
    case BPF_JGE:
      return accumulator >= operand;
    default:
      return (accumulator & operand) != 0;
  }
}

std::uint32_t wordAt(const seccomp_data& data, std::uint32_t offset) {
  std::uint32_t word = 0;
  std::memcpy(&word, reinterpret_cast<const char*>(&data) + offset, sizeof(word));
  return word;
}

std::uint32_t answerOf(const Decision& decision) {
  switch (decision.action) {
    case Action::ALLOW:
      return SECCOMP_RET_ALLOW;
    case Action::ERRNO:
      return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(decision.error);
    case Action::KILL_PROCESS:
      break;
  }
  return SECCOMP_RET_KILL_PROCESS;
}

seccomp_data dataOf(const Probe& probe) {
  seccomp_data data{};
  data.nr = probe.number;
  data.arch = probe.architecture;
  for (std::size_t i = 0; i < probe.arguments.size(); ++i) {
    data.args[i] = probe.arguments[i];
  }
  return data;
}

void addBoundaries(int number, const CallMeaning& call, std::vector<Probe>& probes) {
  for (const auto& cube : call.allowed) {
    probes.push_back({number, cube.value});
    for (std::size_t i = 0; i < cube.value.size(); ++i) {
      if (cube.mask[i] == 0) {
        continue;
      }
      for (unsigned bit = 0; bit < 64; ++bit) {
        Probe probe{number, cube.value};
        probe.arguments[i] ^= std::uint64_t{1} << bit;
        probes.push_back(probe);
        // The same with everything set that the test does not look at.
        probe.arguments[i] |= ~cube.mask[i];
        probes.push_back(probe);
      }
      for (const auto value :
           {std::uint64_t{0}, ~std::uint64_t{0}, cube.value[i] | ~cube.mask[i]}) {
        Probe probe{number, cube.value};
        probe.arguments[i] = value;
        probes.push_back(probe);
      }
    }
  }
}

}  // namespace

std::optional<std::uint32_t> runFilter(std::span<const sock_filter> program,
                                       const seccomp_data& data) {
  if (program.empty() || program.size() > MAX_INSTRUCTIONS) {
    return std::nullopt;
  }
  std::uint32_t accumulator = 0;
  std::uint32_t index = 0;
  std::uint32_t scratch[BPF_MEMWORDS] = {};
  for (std::size_t at = 0; at < program.size(); ++at) {
    const auto& instruction = program[at];
    const auto operand = instruction.k;
    switch (instruction.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (operand % sizeof(std::uint32_t) != 0 || operand >= sizeof(seccomp_data)) {
          return std::nullopt;
        }
        accumulator = wordAt(data, operand);
        break;
      case BPF_LD | BPF_IMM:
        accumulator = operand;
        break;
      case BPF_LD | BPF_MEM:
      case BPF_ST:
        if (operand >= BPF_MEMWORDS) {
          return std::nullopt;
        }
        if (BPF_CLASS(instruction.code) == BPF_ST) {
          scratch[operand] = accumulator;
        } else {
          accumulator = scratch[operand];
        }
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        accumulator &= operand;
        break;
      case BPF_ALU | BPF_OR | BPF_K:
        accumulator |= operand;
        break;
      case BPF_ALU | BPF_RSH | BPF_K:
        accumulator >>= operand & 31;
        break;
      case BPF_MISC | BPF_TAX:
        index = accumulator;
        break;
      case BPF_MISC | BPF_TXA:
        accumulator = index;
        break;
      case BPF_JMP | BPF_JA:
        at += operand;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
      case BPF_JMP | BPF_JGT | BPF_K:
      case BPF_JMP | BPF_JGE | BPF_K:
      case BPF_JMP | BPF_JSET | BPF_K:
        at += jumpHolds(BPF_OP(instruction.code), accumulator, operand) ? instruction.jt
                                                                        : instruction.jf;
        break;
      case BPF_RET | BPF_K:
        return operand;
      case BPF_RET | BPF_A:
        return accumulator;
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

std::uint32_t nativeArchitecture() {
#if defined(__x86_64__)
  return AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
  return AUDIT_ARCH_AARCH64;
#else
#error "add the architecture's AUDIT_ARCH"
#endif
}

std::vector<Probe> probesFor(const Meaning& meaning) {
  std::vector<Probe> probes;
  for (int number = 0; number <= LAST_NUMBER; ++number) {
    probes.push_back({number, {}});
    Probe full{number, {}};
    full.arguments.fill(~std::uint64_t{0});
    probes.push_back(full);
    probes.push_back({static_cast<int>(static_cast<unsigned>(number) | X32_BIT), {}});
    for (const std::uint32_t architecture : ARCHITECTURES) {
      if (architecture != nativeArchitecture()) {
        probes.push_back({number, {}, architecture});
      }
    }
  }
  probes.push_back({-1, {}});
  probes.push_back({INT32_MIN, {}});
  for (const auto& [number, call] : meaning) {
    addBoundaries(number, call, probes);
  }
  return probes;
}

std::optional<Difference> findDifference(std::span<const sock_filter> program,
                                         const Meaning& meaning) {
  for (const auto& probe : probesFor(meaning)) {
    const bool isNative = probe.architecture == nativeArchitecture();
    const auto wanted = isNative ? decide(meaning, probe.number, probe.arguments) : Decision{};
    const auto found = runFilter(program, dataOf(probe));
    if (found != answerOf(wanted)) {
      return Difference{probe, wanted, found};
    }
  }
  return std::nullopt;
}

std::string describeDifference(const Difference& difference) {
  std::ostringstream text;
  text << "call " << difference.probe.number << std::hex << " on architecture 0x"
       << difference.probe.architecture << " with";
  for (const auto argument : difference.probe.arguments) {
    text << " 0x" << argument;
  }
  text << ": wanted 0x" << answerOf(difference.wanted) << ", the filter says ";
  if (difference.found) {
    text << "0x" << *difference.found;
  } else {
    text << "nothing";
  }
  return text.str();
}

}  // namespace cordon::policy::compiler
