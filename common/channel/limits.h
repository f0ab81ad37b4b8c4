// The numbers of the guest channel, protocol version 3. Source: protocols/channel.md §3.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cordon::channel {

inline constexpr std::int64_t PROTOCOL_VERSION = 3;

// Frames.
inline constexpr std::size_t FRAME_HEADER_SIZE =
    5;  // u32 big-endian payload length, then a type byte
inline constexpr std::size_t MAX_FRAME_PAYLOAD = 32768;  // bytes, inclusive; control payloads too
inline constexpr std::uint8_t FRAME_CONTROL = 0x43;      // 'C'
inline constexpr std::uint8_t FRAME_DATA = 0x44;         // 'D'
inline constexpr std::uint8_t FRAME_END = 0x45;          // 'E'
// No honest encoder sends an empty DATA frame; a reader bears this many a message before it calls
// them an attack.
inline constexpr unsigned MAX_EMPTY_DATA_FRAMES = 16;

// Values.
inline constexpr std::int64_t MAX_DECLARED_BULK = std::int64_t{1} << 30;  // bytes
inline constexpr std::int64_t MAX_WIRE_INTEGER = std::int64_t{1} << 53;   // inclusive
inline constexpr std::int64_t MAX_COMMAND_MS = 14'400'000;
inline constexpr std::int64_t DEFAULT_UNTIMED_BOUND_MS = 14'400'000;
inline constexpr std::int64_t MAX_FILE_MODE = 07777;
inline constexpr std::int64_t MAX_DIAG_ENTRIES = 1000;
inline constexpr std::int64_t DEFAULT_DIAG_ENTRIES = 100;
inline constexpr std::size_t MAX_GRANTS = 64;
inline constexpr int MAX_JSON_DEPTH = 16;  // the schema never nests more than four levels

// Lengths of strings, in Unicode code points when read, in bytes when written.
inline constexpr std::size_t MAX_DAEMON_LENGTH = 128;
inline constexpr std::size_t MAX_MESSAGE_LENGTH = 4096;
inline constexpr std::size_t MAX_PARTIAL_LENGTH = 4096;
inline constexpr std::size_t MAX_STAGE_DETAIL_LENGTH = 4096;
inline constexpr std::size_t MAX_DIAG_EVENT_LENGTH = 128;
inline constexpr std::size_t MAX_DIAG_REQUEST_ID_LENGTH = 64;
inline constexpr std::size_t MAX_DIAG_DETAIL_LENGTH = 2048;

// Caps of readers, in bytes.
inline constexpr std::uint64_t DEFAULT_BULK_CAP = 16u << 20;
inline constexpr std::uint64_t EXEC_REPLY_BULK_CAP = 32u << 20;
inline constexpr std::uint64_t GUEST_INBOUND_BULK_CAP = 256u << 20;

// Both ends.
inline constexpr std::uint32_t VSOCK_PORT = 5000;
inline constexpr std::int64_t KILL_GRACE_MS = 5000;  // TERM to KILL, in the guest
inline constexpr std::int64_t WAIT_DELAY_MS =
    5000;  // for descendants that hold the pipes, in the guest

}  // namespace cordon::channel
