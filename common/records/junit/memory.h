// The memory of one document: a budget, and expat's allocator that draws on it. Internal.
#pragma once

#include <cstddef>
#include <expat.h>

namespace cordon::records {

class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t limit) : most(limit) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // False, and nothing taken, where it would go over the limit.
  [[nodiscard]] bool take(std::size_t bytes);
  void give(std::size_t bytes) { taken -= bytes; }
  [[nodiscard]] std::size_t used() const { return taken; }
  [[nodiscard]] std::size_t peak() const { return highest; }

 private:
  std::size_t most;
  std::size_t taken = 0;
  std::size_t highest = 0;
};

// Expat's hooks carry no context: whose budget an allocation draws on is said by the innermost
// scope of its thread. Without one there is no memory. A free gives back to where it was taken.
class BudgetScope {
 public:
  explicit BudgetScope(MemoryBudget& budget);
  ~BudgetScope();
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

 private:
  MemoryBudget* outer;
};

const XML_Memory_Handling_Suite& budgetedAllocator();

}  // namespace cordon::records
