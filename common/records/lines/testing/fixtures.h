// The files of tests/data/verdicts and tests/data/coverage with what `cordon read` says of them.
// Naming: tests/data/README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/records/coverage/coverage.h"

namespace cordon::records::testing {

struct Fixture {
  std::string name;  // of the expectation, without ".json"
  std::string bytes;
  std::optional<Window> window;
  std::string expected;  // one JSON object, without the line's end
};

// All of a folder ("verdicts", "coverage"), in the order of their names. Throws where one is not
// named or paired as the rules say.
std::vector<Fixture> fixturesOf(std::string_view folder);

std::span<const std::byte> bytesOf(std::string_view text);

// Feeds `text` in pieces of the sizes that `nextSize` gives.
template <class Reader>
void feedInPieces(Reader& reader, std::string_view text,
                  const std::function<std::size_t()>& nextSize) {
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, nextSize());
    reader.feed(bytesOf(piece));
    text.remove_prefix(piece.size());
  }
}

// As `cordon read … --json` writes them.
std::string inQuotes(std::string_view text);
std::string listOf(const Findings& findings);

}  // namespace cordon::records::testing
