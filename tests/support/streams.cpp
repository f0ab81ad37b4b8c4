#include "tests/support/streams.h"

#include <kj/debug.h>

namespace cordon::tests {

kj::Promise<void> MemorySink::write(kj::ArrayPtr<const kj::byte> bytes) {
  KJ_REQUIRE(ends == 0 && bytes.size() > 0 && bytes.size() <= parser::BULK_CHUNK);
  return (before ? before() : kj::Promise<void>(kj::READY_NOW)).then([this, bytes]() {
    pieces.push_back(bytes.size());
    content.append(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
  });
}

kj::Promise<void> MemorySink::end() {
  ++ends;
  if (before) return before();
  return kj::READY_NOW;
}

kj::Promise<kj::Array<const kj::byte>> MemorySource::read(std::uint64_t offset, std::size_t size) {
  KJ_REQUIRE(size > 0 && size <= parser::BULK_CHUNK && offset + size <= content.size());
  offsets.push_back(offset);
  if (instead) return instead(offset, size);
  const auto* from = reinterpret_cast<const kj::byte*>(content.data()) + offset;
  return kj::Array<const kj::byte>(kj::heapArray<kj::byte>(from, size));
}

channel::Id CountingIds::nth(std::uint32_t number) {
  channel::Id id;
  for (std::size_t i = 0; i < 4; ++i)
    id.bytes.at(15 - i) = static_cast<std::uint8_t>(number >> (8 * i));
  return id;
}

channel::Id CountingIds::next() {
  return nth(++count);
}

void RecordedVerdicts::verdict(std::string_view operation, const channel::Id& id,
                               const parser::Failure& failure, bool swallowed,
                               const std::vector<parser::TraceEvent>& tail) {
  entries.push_back({std::string(operation), id, parser::describe(failure), swallowed, tail});
}

}  // namespace cordon::tests
