// UTF-8 as the guest channel takes it: well-formed (RFC 3629: no overlong form, no surrogate,
// nothing over U+10FFFF). Internal to cordon-channel.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace cordon::channel {

// Bytes of the well-formed sequence at the front of `text`; 0 where it is ill-formed or cut short.
// `text` is not empty.
std::size_t sequenceLength(std::string_view text);

// The number of code points, or nothing where `text` is ill-formed or holds NUL.
std::optional<std::size_t> countCodePoints(std::string_view text);

}  // namespace cordon::channel
