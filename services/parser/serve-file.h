// The life of cordon-parser, role read. Its order is the argument for its safety:
//  1. refuse a log that the sandbox would stop;
//  2. take the file and the connection that it was handed, and refuse any that are of another kind:
//     the sandbox can ask nothing of a descriptor but to read it;
//  3. start the event loop: the sandbox has no epoll_create and no eventfd;
//  4. enter the sandbox, and check from inside that it holds;
//  5. serve: the first byte of the file and of the caller is read here. It ends when the caller
//  goes.
#pragma once

#include <functional>

#include "common/sandbox/policy.h"
#include "protocols/records.capnp.h"
#include "services/parser/options.h"
#include "services/parser/record-file.h"

namespace cordon::parser {

const sandbox::Policy& readPolicy();

// What the caller gets as its bootstrap.
using FileBootstrap = std::function<protocols::RecordFile::Client(kj::Own<RecordFileServer>)>;

// Returns the exit code: 0 where the caller went, 1 where it could not begin or the connection
// ended by a fault.
int serveFile(const ReadOptions& options, const FileBootstrap& bootstrap);

}  // namespace cordon::parser
