#include "deploy/guest-exec/parser-client.h"

#include <algorithm>
#include <cerrno>
#include <sys/random.h>

#include <kj/debug.h>

#include "deploy/guest-exec/failure-text.h"

namespace cordon::deploy {
namespace {

constexpr std::size_t MAX_OUTPUT = std::size_t{32} << 20;  // bytes of a stream
// A ping's patience: short at first, because a guest that boots answers nothing and we want to see
// it as soon as it does; then longer, because a slow machine may need it.
constexpr std::uint64_t FIRST_PING_MS = 300;
constexpr std::uint64_t LAST_PING_MS = 5'000;
constexpr kj::Duration PAUSE = 50 * kj::MILLISECONDS;

void setBudget(protocols::Budget::Builder budget, std::uint64_t commandMs, std::uint64_t totalMs) {
  budget.setCommandMs(commandMs);
  budget.setUntimedBoundMs(totalMs);
}

kj::Own<kj::AsyncIoStream> connectTo(kj::AsyncIoContext& io, const std::string& path,
                                     std::uint64_t waitMs) {
  auto address = io.provider->getNetwork().parseAddress(kj::str("unix:", path)).wait(io.waitScope);
  kj::Timer& timer = io.provider->getTimer();
  const kj::TimePoint deadline = timer.now() + waitMs * kj::MILLISECONDS;
  for (;;) {
    kj::Own<kj::AsyncIoStream> stream;
    auto failed =
        kj::runCatchingExceptions([&]() { stream = address->connect().wait(io.waitScope); });
    KJ_IF_MAYBE (failure, failed) {
      if (timer.now() >= deadline) kj::throwFatalException(kj::mv(*failure));
      timer.afterDelay(PAUSE).wait(io.waitScope);
      continue;
    }
    return stream;
  }
}

// Whether another try can end otherwise: the guest boots, or is slow.
bool mayPass(protocols::Failure::Reader failure) {
  return failure.isLoss() ||
         (failure.isBudget() && failure.getBudget().getLayer() != protocols::BudgetLayer::COMMAND);
}

}  // namespace

kj::Array<kj::byte> newRequestId() {
  auto id = kj::heapArray<kj::byte>(16);
  std::size_t filled = 0;
  while (filled < id.size()) {
    ssize_t size = getrandom(id.begin() + filled, id.size() - filled, 0);
    KJ_REQUIRE(size >= 0 || errno == EINTR, "getrandom", errno);
    if (size > 0) filled += static_cast<std::size_t>(size);
  }
  return id;
}

kj::Promise<void> MemorySink::write(WriteContext context) {
  auto piece = context.getParams().getBytes();
  if (piece.size() > most - bytes.size()) return ipc::makeException(ipc::ErrorCode::BAD_ARGUMENT);
  bytes.append(reinterpret_cast<const char*>(piece.begin()), piece.size());
  return kj::READY_NOW;
}

kj::Promise<void> MemorySink::end(EndContext) {
  return kj::READY_NOW;
}

kj::Promise<void> MemorySource::read(ReadContext context) {
  auto params = context.getParams();
  const std::uint64_t offset = params.getOffset();
  if (offset > bytes.size() || params.getSize() > protocols::BULK_CHUNK) {
    return ipc::makeException(ipc::ErrorCode::BAD_ARGUMENT);
  }
  const std::size_t size = std::min<std::size_t>(params.getSize(), bytes.size() - offset);
  context.getResults().setBytes(bytes.slice(offset, offset + size));
  return kj::READY_NOW;
}

ParserClient::ParserClient(kj::AsyncIoContext& context, const std::string& path,
                           std::uint64_t waitMs)
    : io(context) {
  ipc::PeerLimits limits;
  peer = kj::heap<ipc::RpcPeer>(connectTo(io, path, waitMs), ipc::RpcPeer::Side::CLIENT, nullptr,
                                limits, io.provider->getTimer());
  watching = peer->onEnd().ignoreResult().eagerlyEvaluate(nullptr);
  client = peer->bootstrap().castAs<protocols::Parser>();
}

protocols::GuestChannel::Client ParserClient::openChannel(std::uint32_t cid, std::uint32_t uid) {
  auto request = client.openChannelRequest();
  request.getGuest().setCid(cid);
  request.getGuest().setUid(uid);
  return request.send().wait(io.waitScope).getChannel();
}

std::optional<std::string> ParserClient::waitReady(protocols::GuestChannel::Client& channel,
                                                   std::uint64_t waitMs) {
  kj::Timer& timer = io.provider->getTimer();
  const kj::TimePoint deadline = timer.now() + waitMs * kj::MILLISECONDS;
  for (std::uint64_t patience = FIRST_PING_MS;;
       patience = std::min(patience * 5 / 4, LAST_PING_MS)) {
    auto request = channel.pingRequest();
    request.setId(newRequestId());
    request.getBudget().setChannelMs(patience);
    request.getBudget().setUntimedBoundMs(patience);
    auto response = request.send().wait(io.waitScope);
    if (response.getResult().isPong()) return std::nullopt;
    auto failure = response.getResult().getFailure();
    if (!mayPass(failure) || timer.now() >= deadline) return describe(failure);
    timer.afterDelay(PAUSE).wait(io.waitScope);
  }
}

ExecOutcome ParserClient::exec(protocols::GuestChannel::Client& channel,
                               const ExecRequest& wanted) {
  ExecOutcome outcome;
  auto call = channel.execRequest();
  call.setId(newRequestId());
  auto request = call.getRequest();
  auto argv = request.initArgv(static_cast<unsigned>(wanted.argv.size()));
  for (unsigned i = 0; i < argv.size(); ++i) argv.set(i, wanted.argv[i].c_str());
  auto env = request.initEnv(static_cast<unsigned>(wanted.env.size()));
  for (unsigned i = 0; i < env.size(); ++i) {
    env[i].setName(wanted.env[i].first.c_str());
    env[i].setValue(wanted.env[i].second.c_str());
  }
  if (wanted.cwd) request.setCwd(wanted.cwd->c_str());
  if (wanted.user) request.setUser(wanted.user->c_str());
  // What the guest takes to kill, and the way there and back.
  setBudget(request.getBudget(), wanted.commandMs, wanted.commandMs + 60'000);
  if (wanted.input) {
    request.setStdinSize(wanted.input->size());
    call.setStdin(kj::heap<MemorySource>(*wanted.input));
  }
  std::string out;
  std::string err;
  call.setStdout(kj::heap<MemorySink>(out, MAX_OUTPUT));
  call.setStderr(kj::heap<MemorySink>(err, MAX_OUTPUT));
  auto response = call.send().wait(io.waitScope);
  auto result = response.getResult();
  if (result.isFailure()) {
    outcome.failure = describe(result.getFailure());
    return outcome;
  }
  outcome.rc = result.getFinished().getRc();
  outcome.deliveries = result.getFinished().getDeliveries();
  outcome.out = std::move(out);
  outcome.err = std::move(err);
  return outcome;
}

}  // namespace cordon::deploy
