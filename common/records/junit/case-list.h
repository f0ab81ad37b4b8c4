// The list of cases that a report keeps: bounded in number, in bytes, and in each entry. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/channel/sha256.h"
#include "common/records/junit/junit.h"
#include "common/records/junit/limits.h"
#include "common/records/junit/memory.h"

namespace cordon::records {

class CaseList {
 public:
  // Of an entry. NONE: the case is not listed.
  using Index = std::uint32_t;
  static constexpr Index NONE = ~Index{0};

  CaseList(const JunitLimits& caps, MemoryBudget& given) : limits(caps), budget(given) {}

  // False once the list has stopped.
  [[nodiscard]] bool open() const { return !stopped; }
  // Names in full; `suite` outer to inner. The list stops for good at the first case that does not
  // fit. `cut`: one of the names was cut before.
  Index add(const std::vector<std::string_view>& suite, std::string_view className,
            std::string_view name, bool cut);
  // Text of an entry, in document order. What does not fit is hashed and counted.
  void append(Index entry, std::string_view text);
  // An element of this entry is complete: `outcome` is the entry's from now on.
  void close(Index entry, CaseOutcome outcome, std::uint64_t attempts);

  // Whether a case was left out, or anything of one cut.
  [[nodiscard]] bool truncated() const { return cutAny; }
  std::vector<JunitCase> release();

 private:
  struct Entry {
    JunitCase item;
    std::size_t names = 0;                        // bytes
    std::unique_ptr<channel::Sha256Hasher> rest;  // of all text, once some of it was not kept
  };
  bool afford(std::size_t bytes, std::size_t overhead);
  void startHashing(Entry& entry);

  const JunitLimits& limits;
  MemoryBudget& budget;
  std::deque<Entry> entries;
  std::size_t bytes = 0;   // names and texts
  std::size_t memory = 0;  // these, and what the entries cost
  bool stopped = false;
  bool cutAny = false;
};

}  // namespace cordon::records
