// Bytes of the guest channel for tests: honest ones by the encoder, and raw ones that no encoder
// would make.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/channel/message.h"

namespace cordon::tests {

// A whole message. Throws where the encoder refuses it.
std::string wire(const channel::Message& message, std::string_view bulk = {});
std::string wire(const channel::Id& id, channel::Body body, std::string_view bulk = {});

std::string rawFrame(std::uint8_t type, std::string_view payload);
std::string rawHeader(std::uint32_t length, std::uint8_t type);
std::string rawControl(std::string_view json);
std::string rawData(std::string_view bytes);
// END of exactly this bulk.
std::string rawEnd(std::string_view bulk);
std::string rawEnd(std::string_view sha256, std::int64_t size);
// "sha256" as the wire has it.
std::string sha256Hex(std::string_view bytes);

channel::Id idOf(std::uint8_t fill);

}  // namespace cordon::tests
