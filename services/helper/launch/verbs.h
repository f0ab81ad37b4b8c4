// What cordon-launch does, verb by verb.
#pragma once

#include "services/helper/launch/cell.h"
#include "services/helper/launch/options.h"

namespace cordon::launch {

// Each runs until what it started has ended and everything it made is gone; the program's ending is
// to be its own. Throws LaunchError; nothing is left behind then either.
Ending runGuest(const GuestOptions& options);
Ending runParser(const ParserOptions& options);

}  // namespace cordon::launch
