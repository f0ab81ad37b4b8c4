#include "services/parser/serve.h"

#include <array>
#include <cstring>
#include <exception>
#include <string>
#include <unistd.h>
#include <variant>
#include <vector>

#include <kj/async-unix.h>
#include <kj/debug.h>

#include "common/channel/message.h"
#include "common/ipc/rpc-listener.h"
#include "common/log/kj-bridge.h"
#include "common/log/log.h"
#include "policy/compiled/parser-channel.h"
#include "services/parser/startup.h"

namespace cordon::parser {
namespace {

constexpr const sandbox::Policy& POLICY = policy::PARSER_CHANNEL;

// Operations, connections and what the loop needs leave room for a burst of accepts.
constexpr std::uint64_t MAX_OPEN_FILES = 256;
constexpr std::uint64_t MAX_ADDRESS_SPACE = std::uint64_t{512}
                                            << 20;  // bytes; at rest it is about 30 MiB

ServiceOptions serviceOptions(const ServeOptions& options) {
  ServiceOptions result;
  result.socketsDirectory = options.socketsDirectory;
  result.allowRootPeer = options.allowRootPeer;
  result.facts.version = CORDON_VERSION;
  result.facts.policy = POLICY.name;
  const auto digest = channel::sha256FromHex(POLICY.sha256);
  KJ_ASSERT(digest.has_value(), "a policy without its hash");
  std::copy(digest->begin(), digest->end(), result.facts.policySha256.begin());
  return result;
}

void logConnection(const log::Log& log, const ipc::ConnectionEvent& event) {
  const std::int64_t uid = event.uid ? static_cast<std::int64_t>(*event.uid) : -1;
  switch (event.kind) {
    case ipc::ConnectionEvent::Kind::ACCEPTED:
      return log.info("peer.accepted", {{"uid", uid}});
    case ipc::ConnectionEvent::Kind::REFUSED:
      return log.warn("peer.refused", {{"uid", uid}, {"reason", ipc::name(event.reason)}});
    case ipc::ConnectionEvent::Kind::ENDED:
      return log.info("peer.ended", {{"uid", uid}, {"reason", ipc::name(event.reason)}});
    case ipc::ConnectionEvent::Kind::ACCEPT_FAILED:
      return log.warn("accept.failed", {{"errno", ::strerrorname_np(event.error)}});
  }
}

// Serves whoever may connect, for ever.
int serveAll(kj::AsyncIoContext& io, Endpoint endpoint, protocols::Parser::Client& parser,
             std::set<uid_t> allowedUids, const log::Log& log) {
  if (allowedUids.empty()) allowedUids.insert(::geteuid());
  ipc::RpcListener listener(
      kj::mv(endpoint.socket), io.unixEventPort, *io.lowLevelProvider, io.provider->getTimer(),
      ipc::ListenerRules{.allowedUids = std::move(allowedUids)}, ipc::PeerLimits{},
      [&parser](uid_t) { return capnp::Capability::Client(parser); },
      [&log](const ipc::ConnectionEvent& event) { logConnection(log, event); });
  listener.run().wait(io.waitScope);
  return EXIT_FAILURE;
}

}  // namespace

const sandbox::Policy& channelPolicy() {
  return POLICY;
}

int serve(const ServeOptions& options, const Bootstrap& bootstrap) {
  const auto log = log::Log::forService("cordon-parser");
  const log::KjBridge bridge(log);
  try {
    refuseLogInFile(log);
    Endpoint endpoint = openSocket(options.listening, log);
    auto io = kj::setupAsyncIo();
    io.waitScope.setBusyPollInterval(TURNS_BETWEEN_POLLS);
    enterSandbox({.policy = POLICY,
                  .limits = {.openFiles = MAX_OPEN_FILES, .addressSpace = MAX_ADDRESS_SPACE},
                  .statusFd = std::nullopt},
                 log);
    KernelIdSource ids;
    ParserService service(*io.lowLevelProvider, io.provider->getTimer(), ids, log,
                          serviceOptions(options));
    protocols::Parser::Client parser = bootstrap(service);
    if (!endpoint.isListener) return serveOne(io, kj::mv(endpoint), parser, log);
    return serveAll(io, kj::mv(endpoint), parser, options.allowedUids, log);
  } catch (const kj::Exception& exception) {
    log.error("parser.fault", {{"text", exception.getDescription().cStr()}});
  } catch (const std::exception& exception) {
    log.error("parser.fault", {{"text", exception.what()}});
  }
  return EXIT_FAILURE;
}

}  // namespace cordon::parser
