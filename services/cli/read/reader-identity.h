// Whom the parser runs as that reads an operator's file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>

namespace cordon::cli {

// Where root's readers have their uids and gids: behind those of the direct launcher (its base and
// four blocks of 65536, one for each kind of process), outside what any distribution or systemd
// hands out.
inline constexpr uid_t READER_UID_BASE = 1879048192 + 5 * 65536;
inline constexpr uid_t READER_UIDS = 65536;

// The first of READER_UIDS from `start` on, around, that no account, no group and no process has
// (processes as `procPath` tells them); nothing where all are taken. Two callers with different
// `start` may be at it at once: each passes its own pid.
std::optional<uid_t> findUnusedUid(pid_t start, const std::string& procPath = "/proc");

}  // namespace cordon::cli
