// The caller's side of an operation, for tests: bulk in memory, with the faults a test wants, and a
// record of verdicts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <kj/async.h>
#include <kj/timer.h>

#include "services/parser/bulk.h"
#include "services/parser/guest-client.h"
#include "services/parser/trace.h"

namespace cordon::tests {

class MemorySink final : public parser::BulkSink {
 public:
  kj::Promise<void> write(kj::ArrayPtr<const kj::byte> bytes) override;
  kj::Promise<void> end() override;

  std::string content;
  std::vector<std::size_t> pieces;
  unsigned ends = 0;
  // Asked before each write and before the end; a rejected promise fails it.
  std::function<kj::Promise<void>()> before;
};

class MemorySource final : public parser::BulkSource {
 public:
  explicit MemorySource(std::string bytes) : content(std::move(bytes)) {}
  kj::Promise<kj::Array<const kj::byte>> read(std::uint64_t offset, std::size_t size) override;

  std::string content;
  std::vector<std::uint64_t> offsets;  // as they were asked for
  // May put another answer in place of the right one.
  std::function<kj::Promise<kj::Array<const kj::byte>>(std::uint64_t, std::size_t)> instead;
};

// 1, 2, 3, … in the last bytes, so that a test can tell what came when.
class CountingIds final : public parser::IdSource {
 public:
  channel::Id next() override;
  static channel::Id nth(std::uint32_t number);

 private:
  std::uint32_t count = 0;
};

class RecordedVerdicts final : public parser::VerdictLog {
 public:
  struct Entry {
    std::string operation;
    channel::Id id;
    std::string what;  // parser::describe
    bool swallowed = false;
    std::vector<parser::TraceEvent> tail;
  };
  void verdict(std::string_view operation, const channel::Id& id, const parser::Failure& failure,
               bool swallowed, const std::vector<parser::TraceEvent>& tail) override;
  std::vector<Entry> entries;
};

}  // namespace cordon::tests
