#include "services/parser/serve-file.h"

#include <cstdlib>
#include <exception>
#include <unistd.h>
#include <utility>
#include <variant>

#include <kj/async-unix.h>
#include <kj/debug.h>

#include "common/log/kj-bridge.h"
#include "common/log/log.h"
#include "policy/compiled/parser-model.h"
#include "services/parser/startup.h"

namespace cordon::parser {
namespace {

constexpr const sandbox::Policy& POLICY = policy::PARSER_MODEL;

// Standard streams, the file, the connection, the event loop's own, and one for enter().
constexpr std::uint64_t MAX_OPEN_FILES = 16;
constexpr std::uint64_t MAX_ADDRESS_SPACE = std::uint64_t{256} << 20;  // bytes
// Over the budgets that the readers have themselves, whose end is told as outOfTime: this one is
// for a reader that is lost.
constexpr std::uint64_t MAX_PROCESSOR_SECONDS = 330;

InputFile takeFile(int fd, const log::Log& log) {
  auto taken = InputFile::take(fd);
  if (const auto* refusal = std::get_if<FileRefusal>(&taken)) {
    log.error("file.refused", {{"reason", describe(*refusal)}});
    ::_exit(EXIT_FAILURE);
  }
  return std::get<InputFile>(std::move(taken));
}

}  // namespace

const sandbox::Policy& readPolicy() {
  return POLICY;
}

int serveFile(const ReadOptions& options, const FileBootstrap& bootstrap) {
  const auto log = log::Log::forService("cordon-parser");
  const log::KjBridge bridge(log);
  try {
    refuseLogInFile(log);
    InputFile file = takeFile(options.fileFd, log);
    Endpoint endpoint = openSocket(ServeFd{options.rpcFd}, log);
    auto io = kj::setupAsyncIo();
    io.waitScope.setBusyPollInterval(TURNS_BETWEEN_POLLS);
    enterSandbox({.policy = POLICY,
                  .limits = {.openFiles = MAX_OPEN_FILES,
                             .addressSpace = MAX_ADDRESS_SPACE,
                             .processorSeconds = MAX_PROCESSOR_SECONDS},
                  .statusFd = std::nullopt,
                  .keepsForeignGroups = true},
                 log);
    return serveOne(io, kj::mv(endpoint), bootstrap(kj::heap<RecordFileServer>(std::move(file))),
                    log);
  } catch (const kj::Exception& exception) {
    log.error("parser.fault", {{"text", exception.getDescription().cStr()}});
  } catch (const std::exception& exception) {
    log.error("parser.fault", {{"text", exception.what()}});
  }
  return EXIT_FAILURE;
}

}  // namespace cordon::parser
