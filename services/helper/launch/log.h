// What cordon-launch says, a line each on standard error.
#pragma once

#include <string_view>

namespace cordon::launch {

void say(std::string_view message);
void warn(std::string_view message);

}  // namespace cordon::launch
