// A second reading of protocols/channel.md §4 to §6 for the fuzz target: over simdjson's document
// and by hand, sharing no table with the codec.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cordon::channel::fuzz {

// The canonical bytes of a legal control payload; nothing for any other.
std::optional<std::string> judgeControl(std::string_view payload);

// The same for an END payload.
std::optional<std::string> judgeEnd(std::string_view payload);

}  // namespace cordon::channel::fuzz
