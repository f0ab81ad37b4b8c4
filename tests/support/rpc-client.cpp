#include "tests/support/rpc-client.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <gtest/gtest.h>
#include <kj/debug.h>

#include "common/ipc/error.h"

namespace cordon::tests {
namespace {

std::string text(capnp::Data::Reader data) {
  return {reinterpret_cast<const char*>(data.begin()), data.size()};
}
capnp::Data::Reader bytesOf(const channel::Id& id) {
  return {id.bytes.data(), id.bytes.size()};
}

channel::Id idOf(capnp::Data::Reader data) {
  channel::Id id;
  KJ_REQUIRE(data.size() == id.bytes.size(), "an id of another size", data.size());
  std::copy(data.begin(), data.end(), id.bytes.begin());
  return id;
}
channel::Sha256 digestFrom(capnp::Data::Reader data) {
  channel::Sha256 digest{};
  KJ_REQUIRE(data.size() == digest.size(), "a digest of another size", data.size());
  std::copy(data.begin(), data.end(), digest.begin());
  return digest;
}

// The contract's enumerators stand in the order of the core's.
template <typename To, typename From>
To same(From value) {
  return static_cast<To>(static_cast<std::uint16_t>(value));
}

parser::Failure failureOf(protocols::Failure::Reader from) {
  using Which = protocols::Failure::Which;
  parser::Failure failure{.deliveries = from.getDeliveries(), .reason = {}};
  switch (from.which()) {
    case Which::TAMPER: {
      parser::Tamper tamper{same<parser::TamperClass>(from.getTamper().getClass()), {}};
      if (from.getTamper().getFrame().size() != 0)
        tamper.frame = digestFrom(from.getTamper().getFrame());
      failure.reason = tamper;
      break;
    }
    case Which::LOSS:
      failure.reason = same<parser::LossClass>(from.getLoss());
      break;
    case Which::BUDGET:
      EXPECT_LE(from.getBudget().getPartial().size(), 16384u);
      failure.reason =
          parser::BudgetFailure{same<channel::BudgetLayer>(from.getBudget().getLayer()),
                                text(from.getBudget().getPartial())};
      break;
    case Which::GUEST:
      EXPECT_LE(from.getGuest().getMessage().size(), 16384u);
      failure.reason =
          parser::GuestError{from.getGuest().getErrno().cStr(), text(from.getGuest().getMessage())};
      break;
    case Which::FILE_LIMIT:
      failure.reason = parser::FileLimit{from.getFileLimit()};
      break;
    case Which::SESSION_CHANGED:
      failure.reason = parser::SessionChange{idOf(from.getSessionChanged().getPinned()),
                                             idOf(from.getSessionChanged().getFound())};
      break;
    case Which::ARGUMENT:
      failure.reason = same<parser::ArgumentError>(from.getArgument());
      break;
    case Which::STREAM:
      failure.reason = same<parser::StreamError>(from.getStream());
      break;
  }
  return failure;
}

parser::Finished finishedOf(protocols::ExecResult::Finished::Reader from) {
  return {.rc = from.getRc(),
          .stdoutSize = from.getStdoutSize(),
          .stderrSize = from.getStderrSize(),
          .stdoutTruncated = from.getStdoutTruncated(),
          .stderrTruncated = from.getStderrTruncated(),
          .stdoutSha256 = digestFrom(from.getStdoutSha256()),
          .stderrSha256 = digestFrom(from.getStderrSha256()),
          .deliveries = from.getDeliveries()};
}

void setBudget(protocols::Budget::Builder to, const channel::Budget& from) {
  to.setCommandMs(static_cast<std::uint64_t>(from.commandMs.value_or(0)));
  to.setChannelMs(static_cast<std::uint64_t>(from.channelMs.value_or(0)));
  to.setUntimedBoundMs(static_cast<std::uint64_t>(from.untimedBoundMs));
}

class Sink final : public protocols::ByteSink::Server {
 public:
  explicit Sink(std::string& into) : content(into) { content.clear(); }

 protected:
  kj::Promise<void> write(WriteContext context) override {
    const auto piece = context.getParams().getBytes();
    EXPECT_GE(piece.size(), 1u);
    EXPECT_LE(piece.size(), protocols::BULK_CHUNK);
    content.append(text(piece));
    return kj::READY_NOW;
  }
  kj::Promise<void> end(EndContext) override { return kj::READY_NOW; }

 private:
  std::string& content;
};

class Source final : public protocols::ByteSource::Server {
 public:
  explicit Source(const std::string& from) : content(from) {}

 protected:
  kj::Promise<void> read(ReadContext context) override {
    const auto offset = context.getParams().getOffset();
    const auto size = context.getParams().getSize();
    KJ_REQUIRE(offset <= content.size() && size >= 1 && size <= protocols::BULK_CHUNK);
    const auto part = std::string_view(content).substr(offset, size);
    context.getResults().setBytes(
        kj::arrayPtr(reinterpret_cast<const kj::byte*>(part.data()), part.size()));
    return kj::READY_NOW;
  }

 private:
  const std::string& content;
};

parser::Outcome<parser::Pong> pongOf(protocols::PingResult::Reader result) {
  if (result.isFailure()) return failureOf(result.getFailure());
  EXPECT_LE(result.getPong().getDaemon().size(), 512u);
  return parser::Pong{text(result.getPong().getDaemon()), idOf(result.getPong().getSession())};
}

channel::DiagLevel levelOf(protocols::DiagResult::Level level) {
  return same<channel::DiagLevel>(level);
}

}  // namespace

RpcClient::RpcClient(kj::AsyncIoContext& context, const std::string& parserPath, GuestAddress guest,
                     std::function<unsigned()> connections)
    : io(context), count(std::move(connections)), parserClient(nullptr), channel(nullptr) {
  auto address =
      io.provider->getNetwork().parseAddress(kj::str("unix:", parserPath)).wait(io.waitScope);
  peer = kj::heap<ipc::RpcPeer>(address->connect().wait(io.waitScope), ipc::RpcPeer::Side::CLIENT,
                                nullptr, ipc::PeerLimits{}, io.provider->getTimer());
  watching = peer->onEnd().ignoreResult().eagerlyEvaluate(nullptr);
  parserClient = peer->bootstrap().castAs<protocols::Parser>();
  auto request = parserClient.openChannelRequest();
  request.getGuest().setCid(guest.cid);
  request.getGuest().setUid(guest.uid);
  channel = request.send().wait(io.waitScope).getChannel();
}

std::optional<unsigned> RpcClient::exchanges() {
  if (!count) return std::nullopt;
  return count();
}

capnp::Response<protocols::Parser::DescribeResults> RpcClient::describe() {
  return parserClient.describeRequest().send().wait(io.waitScope);
}

parser::Outcome<parser::Pong> RpcClient::ping() {
  auto request = channel.pingRequest();
  request.setId(bytesOf(ids.next()));
  return pongOf(request.send().wait(io.waitScope).getResult());
}

parser::Outcome<parser::Pong> RpcClient::pinSession() {
  auto request = channel.pinSessionRequest();
  request.setId(bytesOf(ids.next()));
  return pongOf(request.send().wait(io.waitScope).getResult());
}

parser::Outcome<parser::Pong> RpcClient::waitReady(kj::Duration limit) {
  kj::Timer& timer = io.provider->getTimer();
  const kj::TimePoint deadline = timer.now() + limit;
  for (;;) {
    auto request = channel.pingRequest();
    request.setId(bytesOf(ids.next()));
    request.getBudget().setChannelMs(2000);
    request.getBudget().setUntimedBoundMs(2000);
    auto outcome = pongOf(request.send().wait(io.waitScope).getResult());
    const auto* failure = std::get_if<parser::Failure>(&outcome);
    const bool mayPass =
        failure != nullptr && (std::holds_alternative<parser::LossClass>(failure->reason) ||
                               std::holds_alternative<parser::BudgetFailure>(failure->reason));
    if (!mayPass || timer.now() >= deadline) return outcome;
    timer.afterDelay(50 * kj::MILLISECONDS).wait(io.waitScope);
  }
}

parser::Outcome<parser::Finished> RpcClient::exec(channel::Exec wanted,
                                                  const std::optional<std::string>& input,
                                                  std::string& output, std::string& errors,
                                                  std::optional<channel::Id> id) {
  auto call = channel.execRequest();
  call.setId(bytesOf(id.value_or(ids.next())));
  auto request = call.getRequest();
  auto argv = request.initArgv(static_cast<unsigned>(wanted.cmd.size()));
  for (unsigned i = 0; i < argv.size(); ++i) argv.set(i, wanted.cmd[i].c_str());
  auto env = request.initEnv(static_cast<unsigned>(wanted.env.size()));
  unsigned next = 0;
  for (const auto& [name, value] : wanted.env) {
    env[next].setName(name.c_str());
    env[next].setValue(value.c_str());
    ++next;
  }
  if (wanted.cwd) request.setCwd(wanted.cwd->c_str());
  if (wanted.user) request.setUser(wanted.user->c_str());
  setBudget(request.initBudget(), wanted.budget);
  if (input) {
    request.setStdinSize(input->size());
    call.setStdin(kj::heap<Source>(*input));
  }
  call.setStdout(kj::heap<Sink>(output));
  call.setStderr(kj::heap<Sink>(errors));
  auto response = call.send().wait(io.waitScope);
  if (response.getResult().isFailure()) return failureOf(response.getResult().getFailure());
  return finishedOf(response.getResult().getFinished());
}

parser::Outcome<parser::Content> RpcClient::readFile(channel::ReadFile wanted,
                                                     std::string& content) {
  auto call = channel.readFileRequest();
  call.setId(bytesOf(ids.next()));
  call.setPath(wanted.path.c_str());
  call.setMaxBytes(static_cast<std::uint64_t>(
      wanted.maxBytes.value_or(static_cast<std::int64_t>(channel::DEFAULT_BULK_CAP))));
  setBudget(call.initBudget(), wanted.budget);
  call.setContent(kj::heap<Sink>(content));
  auto response = call.send().wait(io.waitScope);
  if (response.getResult().isFailure()) return failureOf(response.getResult().getFailure());
  const auto result = response.getResult().getContent();
  return parser::Content{result.getSize(), digestFrom(result.getSha256()), result.getDeliveries()};
}

parser::Outcome<parser::Written> RpcClient::writeFile(channel::WriteFile wanted,
                                                      const std::string& content) {
  auto call = channel.writeFileRequest();
  call.setId(bytesOf(ids.next()));
  call.setPath(wanted.path.c_str());
  if (wanted.mode) {
    call.initMode().setBits(static_cast<std::uint16_t>(*wanted.mode));
  } else {
    call.initMode().setDefault();
  }
  call.setSize(content.size());
  setBudget(call.initBudget(), wanted.budget);
  call.setContent(kj::heap<Source>(content));
  auto response = call.send().wait(io.waitScope);
  if (response.getResult().isFailure()) return failureOf(response.getResult().getFailure());
  const auto result = response.getResult().getWritten();
  return parser::Written{digestFrom(result.getSha256()), result.getDeliveries()};
}

parser::Outcome<parser::Polled> RpcClient::poll(const channel::Id& target) {
  auto call = channel.pollRequest();
  call.setId(bytesOf(ids.next()));
  call.setTargetId(bytesOf(target));
  auto response = call.send().wait(io.waitScope);
  const auto result = response.getResult();
  switch (result.which()) {
    case protocols::PollResult::RUNNING:
      return parser::Polled(parser::Running{result.getRunning()});
    case protocols::PollResult::EXEC:
      return parser::Polled(finishedOf(result.getExec()));
    case protocols::PollResult::FILE:
      return parser::Polled(parser::StoredFile{result.getFile()});
    case protocols::PollResult::OK:
      return parser::Polled(parser::StoredOk{});
    case protocols::PollResult::FAILURE:
      return failureOf(result.getFailure());
  }
  KJ_FAIL_ASSERT("a poll result of no known kind");
}

parser::Outcome<parser::DiagReport> RpcClient::diag(std::int64_t maxEntries) {
  auto call = channel.diagRequest();
  call.setId(bytesOf(ids.next()));
  call.setMaxEntries(static_cast<std::uint16_t>(maxEntries));
  auto response = call.send().wait(io.waitScope);
  if (response.getResult().isFailure()) return failureOf(response.getResult().getFailure());
  const auto result = response.getResult().getReport();
  parser::DiagReport report{.entries = {}, .listenerRestarts = result.getListenerRestarts()};
  for (const auto entry : result.getEntries()) {
    channel::DiagEntry one{.tsMs = static_cast<std::int64_t>(entry.getTsMs()),
                           .level = levelOf(entry.getLevel()),
                           .event = text(entry.getEvent()),
                           .requestId = std::nullopt,
                           .detail = text(entry.getDetail())};
    if (entry.hasRequestId()) one.requestId = text(entry.getRequestId());
    report.entries.push_back(std::move(one));
  }
  return report;
}

}  // namespace cordon::tests
