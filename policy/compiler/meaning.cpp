#include "policy/compiler/meaning.h"

#include <algorithm>
#include <bit>
#include <span>

namespace cordon::policy::compiler {
namespace {

bool intersects(const Cube& a, const Cube& b) {
  for (std::size_t i = 0; i < a.mask.size(); ++i) {
    if (((a.value[i] ^ b.value[i]) & a.mask[i] & b.mask[i]) != 0) {
      return false;
    }
  }
  return true;
}

// A member of `cube` that no cube of `cover` contains, or nothing. What is left of a cube without
// another is a disjoint union of at most one cube for each bit that the other fixes and the first
// leaves open; each is checked in its turn.
std::optional<Arguments> findUncovered(const Cube& cube, std::span<const Cube> cover) {
  const auto hit = std::find_if(cover.begin(), cover.end(),
                                [&](const Cube& candidate) { return intersects(cube, candidate); });
  if (hit == cover.end()) {
    return cube.value;
  }
  const auto rest = cover.subspan(static_cast<std::size_t>(hit - cover.begin()) + 1);
  Cube remaining = cube;
  for (std::size_t i = 0; i < cube.mask.size(); ++i) {
    for (auto open = hit->mask[i] & ~cube.mask[i]; open != 0; open &= open - 1) {
      const auto bit = std::uint64_t{1} << std::countr_zero(open);
      Cube outside = remaining;
      outside.mask[i] |= bit;
      outside.value[i] |= ~hit->value[i] & bit;
      if (auto found = findUncovered(outside, rest)) {
        return found;
      }
      remaining.mask[i] |= bit;
      remaining.value[i] |= hit->value[i] & bit;
    }
  }
  return std::nullopt;
}

}  // namespace

bool Cube::contains(const Arguments& arguments) const {
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if ((arguments[i] & mask[i]) != value[i]) {
      return false;
    }
  }
  return true;
}

Decision decide(const Meaning& meaning, int number, const Arguments& arguments) {
  const auto call = meaning.find(number);
  if (call == meaning.end()) {
    return {};
  }
  if (call->second.error) {
    return {Action::ERRNO, *call->second.error};
  }
  const auto& allowed = call->second.allowed;
  const bool isAllowed = std::any_of(allowed.begin(), allowed.end(),
                                     [&](const Cube& cube) { return cube.contains(arguments); });
  return {isAllowed ? Action::ALLOW : Action::KILL_PROCESS, 0};
}

std::optional<Excess> findExcess(const Meaning& outer, const Meaning& inner) {
  for (const auto& [number, call] : inner) {
    const auto found = outer.find(number);
    if (found == outer.end()) {
      return Excess{number, call.allowed.empty() ? Arguments{} : call.allowed.front().value};
    }
    const auto& outside = found->second;
    if (outside.error) {
      // The outer filter answers before the call runs: the same meaning only if the inner one says
      // the same.
      if (outside.error != call.error) {
        return Excess{number, call.allowed.empty() ? Arguments{} : call.allowed.front().value};
      }
      continue;
    }
    // An inner errno rule needs the outer filter to let every argument pass.
    const auto inside = call.error ? std::vector<Cube>{Cube{}} : call.allowed;
    for (const auto& cube : inside) {
      if (auto arguments = findUncovered(cube, outside.allowed)) {
        return Excess{number, *arguments};
      }
    }
  }
  return std::nullopt;
}

}  // namespace cordon::policy::compiler
