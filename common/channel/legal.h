// The bounds and cross rules of every kind, for what was read and for what is about to be written.
// Internal to cordon-channel.
#pragma once

#include "common/channel/schema.h"

namespace cordon::channel {

bool isLegal(const Message& message);
bool isLegal(const End& end);

}  // namespace cordon::channel
