#include "services/parser/startup.h"

#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <variant>

#include "common/ipc/rpc-peer.h"

namespace cordon::parser {

void refuseLogInFile(const log::Log& log) {
  struct stat status {};
  if (::fstat(STDERR_FILENO, &status) == 0 && !S_ISREG(status.st_mode)) return;
  log.error(
      "log.refused",
      {{"reason", "standard error is a file or closed; give a pipe, a terminal or the journal"}});
  ::_exit(EXIT_FAILURE);
}

Endpoint openSocket(const Listening& listening, const log::Log& log) {
  auto opened = openEndpoint(listening);
  if (const auto* failure = std::get_if<ListenFailure>(&opened)) {
    log.error("listen.failed", {{"reason", describe(*failure)}});
    ::_exit(EXIT_FAILURE);
  }
  return std::get<Endpoint>(std::move(opened));
}

void enterSandbox(const sandbox::Confinement& confinement, const log::Log& log) {
  if (const auto failure = sandbox::enter(confinement)) {
    log.error("sandbox.refused", {{"missing", sandbox::nameOf(failure->step)},
                                  {"detail", sandbox::describe(*failure)}});
    ::_exit(EXIT_FAILURE);
  }
  log.info("sandbox.entered",
           {{"policy", confinement.policy.name}, {"sha256", confinement.policy.sha256}});
}

int serveOne(kj::AsyncIoContext& io, Endpoint endpoint, capnp::Capability::Client bootstrap,
             const log::Log& log) {
  constexpr capnp::uint FLAGS =
      kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC | kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK;
  ipc::RpcPeer peer(io.lowLevelProvider->wrapSocketFd(kj::mv(endpoint.socket), FLAGS),
                    ipc::RpcPeer::Side::SERVER, kj::mv(bootstrap), ipc::PeerLimits{},
                    io.provider->getTimer());
  const ipc::ErrorCode reason = peer.onEnd().wait(io.waitScope);
  log.info("peer.ended", {{"reason", ipc::name(reason)}});
  return reason == ipc::ErrorCode::DISCONNECTED ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace cordon::parser
