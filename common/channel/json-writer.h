// Canonical JSON of control and END payloads. Source: protocols/channel.md §4.1 and §4.2. Internal
// to cordon-channel.
#pragma once

#include <string>

#include "common/channel/schema.h"

namespace cordon::channel {

// Both take legal values only (legal.h).
std::string writeControl(const Message& message);
std::string writeEnd(const End& end);

}  // namespace cordon::channel
