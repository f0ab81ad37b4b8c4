// Who runs what under the direct launcher: every identity is a number computed from a CID, and no
// other user has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>

namespace cordon::launch {

inline constexpr std::uint32_t UID_BASE = 1879048192;
inline constexpr std::uint32_t MIN_CID = 3;
inline constexpr std::uint32_t MAX_CID = 65535;

// The uid and the gid are the same number; nothing else in the system has either.
struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  bool operator==(const Identity&) const = default;
};

// cid: MIN_CID..MAX_CID. The VMM and the vsock device of a guest share one identity.
constexpr Identity guestIdentity(std::uint32_t cid) {
  return {UID_BASE + cid, UID_BASE + cid};
}
// firstCid: the range's first CID, by which its services are told from another range's.
constexpr Identity channelParserIdentity(std::uint32_t firstCid) {
  return {UID_BASE + 65536 + firstCid, UID_BASE + 65536 + firstCid};
}

// The pid of a process that runs under `uid` (real, effective, saved or file-system), zombies
// apart. Reads `procPath`.
std::optional<pid_t> processOf(uid_t uid, const std::string& procPath = "/proc");

// Throws UID_BUSY. A process that already has this uid could answer for the guest, or trace and
// kill its VMM.
void refuseBusyUid(uid_t uid);

}  // namespace cordon::launch
