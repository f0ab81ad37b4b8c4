// Strict JSON of control and END payloads into the typed structs, without a document in between.
// Source: protocols/channel.md §4.3. Internal to cordon-channel.
#pragma once

#include <optional>
#include <string_view>

#include "common/channel/schema.h"

namespace cordon::channel {

// Nothing for whatever is not a legal payload; the reason is not told, since no honest peer needs
// it.
std::optional<Message> readControl(std::string_view payload);
std::optional<End> readEnd(std::string_view payload);

}  // namespace cordon::channel
