// Text that somebody else chose, made fit to stand among ours on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace cordon::log {

// Whether `text` is well-formed UTF-8 (RFC 3629).
bool isUtf8(std::string_view text);

// UTF-8 as it is, but for what acts instead of being seen: C0, DEL and C1 controls (line feed and
// tab too), bidirectional controls, line and paragraph separators, and characters without a width
// become \u{202e}, a byte that is not UTF-8 becomes \xNN, a backslash is doubled. One line, always.
std::string visible(std::string_view text);

}  // namespace cordon::log
