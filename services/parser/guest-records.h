// Reads files of records out of a guest: what is made of them, never their bytes.
//
// A reading ends well where the guest's file was read to its end or up to MAX_RECORD_FILE, or where
// the guest has no such file. What it was made of is then verified as every reply is; anything else
// is a Failure, and nothing of what was read is told.
#pragma once

#include <cstdint>
#include <optional>

#include <kj/async.h>

#include "common/records/junit/junit.h"
#include "common/records/verdicts/verdicts.h"
#include "protocols/records.capnp.h"
#include "services/parser/guest-client.h"

namespace cordon::parser {

inline constexpr std::uint64_t MAX_RECORD_FILE = std::uint64_t{512} << 20;  // bytes

// `file.maxBytes` is set here. The list is written to `sink` before the report is there; a sink
// that fails makes it StreamError::FAILED. `client` outlives the promise.
kj::Promise<Outcome<records::JunitReport>> readJunit(GuestClient& client, channel::Id id,
                                                     channel::ReadFile file,
                                                     protocols::CaseSink::Client sink);
kj::Promise<Outcome<records::VerdictsReport>> readVerdicts(GuestClient& client, channel::Id id,
                                                           channel::ReadFile file,
                                                           protocols::VerdictSink::Client sink);

// Whether the guest said that there is no such file.
bool isMissingFile(const Failure& failure);

}  // namespace cordon::parser
