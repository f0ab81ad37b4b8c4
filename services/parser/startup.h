// What the roles of cordon-parser do alike before they serve, and how one connection is served. A
// step that fails says why in the log and ends the process: there is no parser with a part of its
// confinement.
#pragma once

#include <capnp/capability.h>
#include <kj/async-io.h>

#include "common/log/log.h"
#include "common/sandbox/sandbox.h"
#include "services/parser/listening.h"

namespace cordon::parser {

// A reading gives way to the event loop after each piece, and the loop looks at its connections
// after so many turns: without a number it would only when nothing is left to do.
inline constexpr kj::uint TURNS_BETWEEN_POLLS = 16;

// The sandbox lets no file grow: the first line after it would kill the parser (SIGXFSZ) and not be
// seen.
void refuseLogInFile(const log::Log& log);

Endpoint openSocket(const Listening& listening, const log::Log& log);

// Confines the process for good. The first byte from anybody else is read after this.
void enterSandbox(const sandbox::Confinement& confinement, const log::Log& log);

// Serves the one connection that `endpoint` is until the peer goes. The exit code: 0 where it just
// went, 1 where the connection ended by a fault.
int serveOne(kj::AsyncIoContext& io, Endpoint endpoint, capnp::Capability::Client bootstrap,
             const log::Log& log);

}  // namespace cordon::parser
