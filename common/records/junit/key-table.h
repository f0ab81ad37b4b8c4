// Which cases there were, as hashes, with what came of each: 16 bytes a case, for a report may
// name a million. Internal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/channel/message.h"
#include "common/records/junit/junit.h"
#include "common/records/junit/memory.h"

namespace cordon::records {

// 125 bits of a SHA-256: who wants two cases to be taken for one gains nothing, for the worse
// outcome of the two holds.
class CaseKey {
 public:
  CaseKey() = default;
  explicit CaseKey(const channel::Sha256& digest);
  friend bool operator==(const CaseKey&, const CaseKey&) = default;
  [[nodiscard]] std::size_t hash() const { return static_cast<std::size_t>(high); }

 private:
  friend class KeyTable;
  std::uint64_t high = 0;
  std::uint64_t low = 0;  // the last three bits are zero
};

class KeyTable {
 public:
  KeyTable(std::size_t most, MemoryBudget& memory);
  ~KeyTable();
  KeyTable(const KeyTable&) = delete;
  KeyTable& operator=(const KeyTable&) = delete;

  enum class Insertion : std::uint8_t { FRESH, KNOWN, FULL, NO_MEMORY };
  Insertion insert(const CaseKey& key);

  // One more element of a key that was inserted. `before` is of no meaning where it is the first.
  struct Merge {
    bool first;
    CaseOutcome before;
    CaseOutcome after;  // the worse of the two
  };
  Merge merge(const CaseKey& key, CaseOutcome outcome);

 private:
  struct Slot {
    std::uint64_t high = 0;
    std::uint64_t low = 0;  // the last three bits: EMPTY, an outcome + 1, or OPEN
  };
  Slot& find(std::vector<Slot>& in, std::uint64_t high, std::uint64_t low) const;
  bool grow();

  std::size_t maxKeys;
  MemoryBudget& budget;
  std::size_t count = 0;
  std::vector<Slot> slots;
};

}  // namespace cordon::records
