// Virtio-vsock packets (virtio 1.2, §5.10.6): names and fixed numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <linux/virtio_vsock.h>

namespace cordon::vsock {

using PacketHeader = virtio_vsock_hdr;
inline constexpr std::size_t HEADER_SIZE = sizeof(PacketHeader);
static_assert(HEADER_SIZE == 44);

inline constexpr std::uint64_t HOST_CID = 2;
inline constexpr std::uint32_t MAX_PAYLOAD =
    64 * 1024;  // of one packet, either way; Linux sends no more

inline constexpr std::uint32_t SHUTDOWN_BOTH =
    VIRTIO_VSOCK_SHUTDOWN_RCV | VIRTIO_VSOCK_SHUTDOWN_SEND;

}  // namespace cordon::vsock
