#include "common/records/junit/key-table.h"

#include <algorithm>
#include <cstring>

namespace cordon::records {

namespace {

constexpr std::uint64_t STATE = 7;  // mask
constexpr std::uint64_t EMPTY = 0;
constexpr std::uint64_t OPEN = 7;

// Sizes grow by eight and end at the one that holds all keys: while a table is copied, the old one
// beside it is small.
constexpr std::size_t FIRST_SLOTS = 4096;
constexpr std::size_t GROWTH = 8;

constexpr bool tooFull(std::size_t count, std::size_t slots) {
  return count * 5 >= slots * 4;
}

}  // namespace

CaseKey::CaseKey(const channel::Sha256& digest) {
  std::memcpy(&high, digest.data(), sizeof high);
  std::memcpy(&low, digest.data() + sizeof high, sizeof low);
  low &= ~STATE;
}

KeyTable::KeyTable(std::size_t most, MemoryBudget& memory) : maxKeys(most), budget(memory) {}

KeyTable::~KeyTable() {
  budget.give(slots.size() * sizeof(Slot));
}

KeyTable::Slot& KeyTable::find(std::vector<Slot>& in, std::uint64_t high, std::uint64_t low) const {
  // The hash's upper half, scaled: sizes need not be powers of two.
  auto at = static_cast<std::size_t>(((high >> 32) * in.size()) >> 32);
  for (;;) {
    Slot& slot = in[at];
    if ((slot.low & STATE) == EMPTY) return slot;
    if (slot.high == high && (slot.low & ~STATE) == low) return slot;
    at = at + 1 == in.size() ? 0 : at + 1;
  }
}

bool KeyTable::grow() {
  const std::size_t last = maxKeys + maxKeys / 4 + 2;
  const std::size_t wanted = std::min(last, slots.empty() ? FIRST_SLOTS : slots.size() * GROWTH);
  if (!budget.take(wanted * sizeof(Slot))) return false;
  std::vector<Slot> larger(wanted);
  for (const Slot& slot : slots) {
    if ((slot.low & STATE) != EMPTY) find(larger, slot.high, slot.low & ~STATE) = slot;
  }
  slots.swap(larger);
  budget.give(larger.size() * sizeof(Slot));
  return true;
}

KeyTable::Insertion KeyTable::insert(const CaseKey& key) {
  if (!slots.empty() && (find(slots, key.high, key.low).low & STATE) != EMPTY) {
    return Insertion::KNOWN;
  }
  if (count == maxKeys) return Insertion::FULL;
  if (tooFull(count + 1, slots.size()) && !grow()) return Insertion::NO_MEMORY;
  Slot& slot = find(slots, key.high, key.low);
  slot.high = key.high;
  slot.low = key.low | OPEN;
  ++count;
  return Insertion::FRESH;
}

KeyTable::Merge KeyTable::merge(const CaseKey& key, CaseOutcome outcome) {
  Slot& slot = find(slots, key.high, key.low);
  const std::uint64_t state = slot.low & STATE;
  const bool first = state == OPEN;
  const auto before = first ? outcome : static_cast<CaseOutcome>(state - 1);
  const CaseOutcome after = std::max(before, outcome);
  slot.low = key.low | (static_cast<std::uint64_t>(after) + 1);
  return {first, before, after};
}

}  // namespace cordon::records
