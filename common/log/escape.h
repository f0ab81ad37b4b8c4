// How bytes that somebody else chose come to stand in a log line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cordon::log {

// Longest value of a field in a line, in bytes of its escaped form.
inline constexpr std::size_t MAX_VALUE = 256;

// Appends `value` to `out` so that the line stays one line, one field and ASCII: a value of nothing
// but [A-Za-z0-9._:/@,+-] is written as it is, any other between double quotes, where `"` and `\`
// get a backslash and every byte outside 0x20..0x7e becomes \xNN. What does not fit into `limit`
// bytes is cut off and its place marked by `~`, so that a cut value cannot pass for a whole one.
void appendValue(std::string& out, std::string_view value, std::size_t limit = MAX_VALUE);

}  // namespace cordon::log
