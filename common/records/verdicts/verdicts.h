// What is made of a file of verdict records (JSON Lines): the types, without the reader.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/records/report.h"

namespace cordon::records {

enum class VerdictOutcome : std::uint8_t { PASS, FAIL, ERROR, SKIP };

struct VerdictProof {
  std::string kind = {};  // ^[a-z0-9-]{1,32}$
  std::array<std::uint8_t, 32> sha256{};
};

// One line. Always of tier T3: a record cannot say anything else of itself.
struct VerdictRecord {
  std::uint64_t seq = 0;  // 1..2^53-1
  std::string check = {};
  std::optional<std::string> goal = {};
  VerdictOutcome outcome = VerdictOutcome::ERROR;
  std::int64_t observedMs = 0;  // by the producer's clock: a claim
  std::optional<VerdictProof> proof = {};
  // UTF-8 bytes, control characters included; at most 16 KiB.
  std::optional<std::string> detail = {};
};

struct VerdictsReport {
  Status status = Status::EMPTY;
  Reason reason = Reason::NONE;
  std::uint64_t line = 0;              // of the violation, from 1
  std::array<std::uint8_t, 16> run{};  // of the first record; zeros where there is none
  std::uint64_t records = 0;
  std::array<std::uint64_t, 4> outcomes{};  // by VerdictOutcome; together `records`
  bool tamper = false;
  bool green = false;
  Findings findings = {};
  bool truncated = false;  // the list stops before its end: it has a bound in records and in bytes
  std::vector<VerdictRecord> list = {};
};

}  // namespace cordon::records
