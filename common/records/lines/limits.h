// The numbers of JSON Lines: of every file of records, whatever stands in it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cordon::records {

inline constexpr std::size_t MAX_LINE_BYTES = 65536;  // without the LF that ends it
inline constexpr std::uint64_t MAX_LINES = 1'000'000;
inline constexpr int MAX_LINE_DEPTH = 16;  // the outermost object is 1
inline constexpr std::int64_t MAX_LINE_INTEGER = (std::int64_t{1} << 53) - 1;  // and its negative

}  // namespace cordon::records
