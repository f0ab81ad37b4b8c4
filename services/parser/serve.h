// The life of cordon-parser, role channel. Its order is the argument for its safety:
//  1. refuse a log that the sandbox would stop;
//  2. open the socket to serve on: the sandbox has no bind and no open;
//  3. start the event loop: the sandbox has no epoll_create and no eventfd;
//  4. enter the sandbox, and check from inside that it holds;
//  5. serve: the first byte from anybody else is read here.
#pragma once

#include <functional>

#include "common/sandbox/policy.h"
#include "protocols/parser.capnp.h"
#include "services/parser/options.h"
#include "services/parser/parser-service.h"

namespace cordon::parser {

const sandbox::Policy& channelPolicy();

// What every connection gets as its bootstrap.
using Bootstrap = std::function<protocols::Parser::Client(ParserService&)>;

// Returns the exit code: 0 where the peer of --rpc-fd went, 1 where it could not begin or a
// connection ended by a fault. A listener serves for ever.
int serve(const ServeOptions& options, const Bootstrap& bootstrap);

}  // namespace cordon::parser
