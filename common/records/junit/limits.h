// Caps of the JUnit reader. The defaults are the product's; tests lower them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace cordon::records {

struct JunitLimits {
  std::uint64_t bytes = std::uint64_t{512} << 20;  // of the document
  std::uint64_t elements = 5'000'000;
  std::size_t depth = 64;            // the root is 1
  std::size_t attributes = 256;      // of one element, namespace declarations not counted
  std::size_t namespaces = 64;       // different declarations (prefix and name) of the document
  std::size_t names = 1024;          // different names of elements and attributes together
  std::size_t keys = 1'000'000;      // different cases; each nameless one is one
  std::size_t tokenBytes = 8 << 20;  // one tag, comment or processing instruction; not text
  std::size_t caseBytes = 64 << 10;  // names and text that are kept of one case
  std::size_t listedCases = 10'000;
  std::size_t listedBytes = 8 << 20;  // names and texts of all listed cases together
  // The list with what its entries cost beside those, out of `memory`: it stops rather than that a
  // report is refused for it.
  std::size_t listMemory = 24 << 20;
  // What expat holds, the keys and the list together. With the 8 MiB of a small process, and what
  // malloc rounds up, that stays below 64 MiB of resident memory.
  std::size_t memory = 50 << 20;
  std::chrono::nanoseconds processorTime = std::chrono::seconds(300);
  // What expat is given at once, at most; half of tokenBytes where that is less.
  std::size_t pieceBytes = 64 << 10;
};

}  // namespace cordon::records
