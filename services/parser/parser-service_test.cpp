#include "services/parser/parser-service.h"

#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kj/debug.h>

#include "common/ipc/rpc-peer.h"
#include "services/parser/testing/hybrid-guest.h"
#include "tests/support/wire.h"

namespace cordon::parser {
namespace {

using tests::HybridGuest;
using tests::idOf;
using ChannelClient = protocols::GuestChannel::Client;

// Keeps what it gets; may stall for ever or throw.
class TestSink final : public protocols::ByteSink::Server {
 public:
  struct Record {
    std::string bytes = {};
    unsigned writes = 0;
    unsigned ends = 0;
    bool stalls = false;
    bool fails = false;
  };
  explicit TestSink(Record& target) : record(target) {}
  kj::Promise<void> write(WriteContext context) override {
    ++record.writes;
    if (record.fails) return KJ_EXCEPTION(FAILED, "the disk is full");
    const auto bytes = context.getParams().getBytes().asChars();
    record.bytes.append(bytes.begin(), bytes.size());
    if (record.stalls) return kj::NEVER_DONE;
    return kj::READY_NOW;
  }
  kj::Promise<void> end(EndContext) override {
    ++record.ends;
    return kj::READY_NOW;
  }

 private:
  Record& record;
};

class TestSource final : public protocols::ByteSource::Server {
 public:
  explicit TestSource(std::string bytes) : content(std::move(bytes)) {}
  kj::Promise<void> read(ReadContext context) override {
    const auto params = context.getParams();
    const std::string part =
        content.substr(std::min<std::size_t>(params.getOffset(), content.size()), params.getSize());
    context.getResults().setBytes(kj::StringPtr(part.c_str(), part.size()).asBytes());
    return kj::READY_NOW;
  }

 private:
  std::string content;
};
constexpr std::uint32_t CID = 7;
const channel::Id SESSION = idOf(0x5e);

std::string pong(const channel::Message& request) {
  return tests::wire(request.id, channel::Pong{.daemon = "scripted", .session = SESSION});
}

// A parser behind RpcPeer, as many connections to it as a test wants, and guests below a folder of
// its own. Guests run under the test's own uid, so they are dialled with allowRootPeer.
class Service : public ::testing::Test {
 protected:
  Service() {
    std::string pattern = "/tmp/cordon-service-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
    directory = pattern;
    start(true);
  }
  ~Service() noexcept override {
    connections.clear();
    guest = nullptr;
    std::filesystem::remove_all(directory);
  }

  void start(bool allowRootPeer) {
    connections.clear();
    ServiceOptions options{.socketsDirectory = directory, .allowRootPeer = allowRootPeer};
    options.facts = {.version = "1.2.3", .policy = "parser-channel"};
    options.facts.policySha256.fill(0xab);
    service = kj::heap<ParserService>(*io.lowLevelProvider, io.provider->getTimer(), ids, log,
                                      std::move(options));
  }

  struct Connection {
    kj::Own<ipc::RpcPeer> server;
    kj::Own<ipc::RpcPeer> client;
    kj::Promise<void> serving = nullptr;
    kj::Promise<void> using_ = nullptr;
  };
  // A new connection to the parser; the index of it in `connections`.
  protocols::Parser::Client connect() {
    auto pipe = io.provider->newTwoWayPipe();
    Connection connection;
    auto& timer = io.provider->getTimer();
    connection.server = kj::heap<ipc::RpcPeer>(kj::mv(pipe.ends[0]), ipc::RpcPeer::Side::SERVER,
                                               capnp::Capability::Client(service->client()),
                                               ipc::PeerLimits{}, timer);
    connection.client = kj::heap<ipc::RpcPeer>(kj::mv(pipe.ends[1]), ipc::RpcPeer::Side::CLIENT,
                                               nullptr, ipc::PeerLimits{}, timer);
    connection.serving = connection.server->onEnd().ignoreResult().eagerlyEvaluate(nullptr);
    connection.using_ = connection.client->onEnd().ignoreResult().eagerlyEvaluate(nullptr);
    connections.push_back(kj::mv(connection));
    return connections.back().client->bootstrap().castAs<protocols::Parser>();
  }
  static ChannelClient open(protocols::Parser::Client& parser, std::uint32_t cid = CID,
                            uid_t uid = ::geteuid(), std::uint32_t port = 5000) {
    auto request = parser.openChannelRequest();
    auto address = request.initGuest();
    address.setCid(cid);
    address.setUid(uid);
    address.setPort(port);
    return request.send().getChannel();
  }
  void startGuest(HybridGuest::Script script, std::uint32_t cid = CID) {
    guest = kj::heap<HybridGuest>(io, directory + "/" + std::to_string(cid) + "/vsock.sock",
                                  std::move(script));
  }

  template <typename Builder>
  static void setId(Builder& request, std::uint8_t fill = 0xa1) {
    const auto id = idOf(fill);
    request.setId(kj::arrayPtr(id.bytes.data(), id.bytes.size()));
  }
  capnp::Response<protocols::GuestChannel::PingResults> ping(ChannelClient& channel) {
    auto request = channel.pingRequest();
    setId(request);
    return request.send().wait(io.waitScope);
  }
  static capnp::Request<protocols::GuestChannel::ExecParams, protocols::GuestChannel::ExecResults>
  execRequest(ChannelClient& channel) {
    auto request = channel.execRequest();
    setId(request);
    request.initRequest().initArgv(1).set(0, "true");
    return request;
  }
  protocols::ByteSink::Client sink(TestSink::Record& record) { return kj::heap<TestSink>(record); }
  // Waits, with real time passing.
  template <typename Condition>
  void until(Condition condition) {
    while (!condition())
      io.provider->getTimer().afterDelay(1 * kj::MILLISECONDS).wait(io.waitScope);
  }

  kj::AsyncIoContext io = kj::setupAsyncIo();
  log::Log log{"test", STDERR_FILENO, log::Level::ERROR, false};
  KernelIdSource ids;
  std::string directory;
  kj::Own<HybridGuest> guest;
  kj::Own<ParserService> service;
  std::vector<Connection> connections;
};

// What every operation of a channel ends with, if it is a failure by argument.
template <typename Result>
std::optional<protocols::ArgumentError> argumentOf(Result result) {
  if (!result.isFailure() || !result.getFailure().isArgument()) return std::nullopt;
  return result.getFailure().getArgument();
}

TEST_F(Service, DescribesItself) {
  auto parser = connect();
  const auto response = parser.describeRequest().send().wait(io.waitScope);
  EXPECT_EQ(std::string(response.getFacts().getVersion().cStr()), "1.2.3");
  EXPECT_EQ(std::string(response.getFacts().getRole().cStr()), "channel");
  EXPECT_EQ(std::string(response.getFacts().getPolicy().cStr()), "parser-channel");
  EXPECT_EQ(response.getFacts().getPolicySha256().size(), 32u);
}

TEST_F(Service, Pings) {
  startGuest([](const channel::Message& request, const std::string&) { return pong(request); });
  auto parser = connect();
  auto channel = open(parser);
  EXPECT_EQ(guest->connections(), 0u);
  const auto response = ping(channel);
  ASSERT_TRUE(response.getResult().isPong());
  EXPECT_EQ(response.getResult().getPong().getSession().size(), 16u);
  EXPECT_EQ(guest->connections(), 1u);
  EXPECT_EQ(service->operations(), 0u);
}

TEST_F(Service, RefusesIdsOfAnotherLengthInEveryOperation) {
  auto parser = connect();
  auto channel = open(parser);
  const auto bad = protocols::ArgumentError::BAD_ID;
  for (const std::size_t size : {0u, 15u, 17u}) {
    SCOPED_TRACE(size);
    const std::vector<kj::byte> bytes(size, 1);
    const auto id = kj::arrayPtr(bytes.data(), bytes.size());
    const auto with = [&](auto request) {
      request.setId(id);
      auto response = request.send().wait(io.waitScope);
      return argumentOf(response.getResult());
    };
    EXPECT_EQ(with(channel.pingRequest()), bad);
    EXPECT_EQ(with(channel.pinSessionRequest()), bad);
    EXPECT_EQ(with(execRequest(channel)), bad);
    EXPECT_EQ(with(channel.readFileRequest()), bad);
    EXPECT_EQ(with(channel.writeFileRequest()), bad);
    EXPECT_EQ(with(channel.pollRequest()), bad);
    EXPECT_EQ(with(channel.diagRequest()), bad);
    auto poll = channel.pollRequest();
    setId(poll);
    poll.setTargetId(id);
    EXPECT_EQ(argumentOf(poll.send().wait(io.waitScope).getResult()), bad);
  }
}

TEST_F(Service, RefusesBadArgumentsWithoutDialling) {
  startGuest([](const channel::Message&, const std::string&) { return std::nullopt; });
  auto parser = connect();
  auto channel = open(parser);
  using E = protocols::ArgumentError;

  const auto read = [&](auto change) {
    auto request = channel.readFileRequest();
    setId(request);
    request.setPath("/f");
    change(request);
    return argumentOf(request.send().wait(io.waitScope).getResult());
  };
  EXPECT_EQ(read([](auto& r) { r.setPath(""); }), E::BAD_TEXT);
  EXPECT_EQ(read([](auto& r) { r.setPath(std::string(4097, 'p').c_str()); }), E::BAD_TEXT);
  EXPECT_EQ(read([](auto& r) { r.setPath(kj::StringPtr("/a\0b", 4)); }), E::BAD_TEXT);
  EXPECT_EQ(read([](auto& r) { r.setPath("/\xff"); }), E::BAD_TEXT);
  EXPECT_EQ(read([](auto& r) { r.setMaxBytes((1ull << 30) + 1); }), E::BULK_TOO_LARGE);
  EXPECT_EQ(read([](auto& r) { r.setMaxBytes(~0ull); }), E::BULK_TOO_LARGE);
  EXPECT_EQ(read([](auto& r) { r.initBudget().setUntimedBoundMs(14'400'001); }), E::BAD_BUDGET);
  EXPECT_EQ(read([](auto& r) { r.initBudget().setChannelMs(~0ull); }), E::BAD_BUDGET);

  const auto write = [&](auto change) {
    auto request = channel.writeFileRequest();
    setId(request);
    request.setPath("/f");
    request.setContent(kj::heap<TestSource>(""));
    change(request);
    return argumentOf(request.send().wait(io.waitScope).getResult());
  };
  EXPECT_EQ(write([](auto& r) { r.initMode().setBits(010000); }), E::BAD_MODE);
  EXPECT_EQ(write([](auto& r) { r.setSize((256ull << 20) + 1); }), E::BULK_TOO_LARGE);
  EXPECT_EQ(write([](auto& r) { r.setSize(~0ull); }), E::BULK_TOO_LARGE);

  TestSink::Record unused;
  const auto exec = [&](auto change) {
    auto request = execRequest(channel);
    request.setStdout(sink(unused));
    request.setStderr(sink(unused));
    change(request);
    return argumentOf(request.send().wait(io.waitScope).getResult());
  };
  EXPECT_EQ(exec([](auto& r) { r.getRequest().initArgv(0); }), E::BAD_TEXT);
  EXPECT_EQ(exec([](auto& r) { r.getRequest().initArgv(1025); }), E::TOO_MANY);
  EXPECT_EQ(exec([](auto& r) { r.getRequest().initArgv(1).set(0, kj::StringPtr("a\0b", 3)); }),
            E::BAD_TEXT);
  EXPECT_EQ(exec([](auto& r) { r.getRequest().getArgv().set(0, std::string(32768, 'a').c_str()); }),
            E::REQUEST_TOO_LARGE);
  EXPECT_EQ(exec([](auto& r) { r.getRequest().getArgv().set(0, std::string(40000, 'a').c_str()); }),
            E::REQUEST_TOO_LARGE);
  EXPECT_EQ(exec([](auto& r) { r.getRequest().setCwd("\xc0\x80"); }), E::BAD_TEXT);
  EXPECT_EQ(exec([](auto& r) { r.getRequest().initEnv(1025); }), E::TOO_MANY);
  EXPECT_EQ(exec([](auto& r) {
              auto env = r.getRequest().initEnv(2);
              env[0].setName("A");
              env[1].setName("A");
            }),
            E::BAD_TEXT);
  EXPECT_EQ(exec([](auto& r) { r.getRequest().initBudget().setCommandMs(14'400'001); }),
            E::BAD_BUDGET);
  EXPECT_EQ(exec([](auto& r) {
              r.setStdin(kj::heap<TestSource>(""));
              r.getRequest().setStdinSize((256ull << 20) + 1);
            }),
            E::BULK_TOO_LARGE);

  const auto diag = [&](std::uint16_t entries) {
    auto request = channel.diagRequest();
    setId(request);
    request.setMaxEntries(entries);
    return argumentOf(request.send().wait(io.waitScope).getResult());
  };
  EXPECT_EQ(diag(0), E::TOO_MANY);
  EXPECT_EQ(diag(1001), E::TOO_MANY);

  EXPECT_EQ(guest->connections(), 0u);
  EXPECT_EQ(service->operations(), 0u);
  EXPECT_EQ(unused.writes + unused.ends, 0u);
}

TEST_F(Service, AnAddressThatIsNotDialledFailsAtEachOperation) {
  auto parser = connect();
  const auto bad = protocols::ArgumentError::BAD_ADDRESS;
  const auto result = [&](ChannelClient channel) { return argumentOf(ping(channel).getResult()); };
  EXPECT_EQ(result(open(parser, 2)), bad);
  EXPECT_EQ(result(open(parser, 65536)), bad);
  EXPECT_EQ(result(open(parser, CID, 65534)), bad);
  EXPECT_EQ(result(open(parser, CID, 4242, 0)), bad);
  auto channel = open(parser, 2);
  EXPECT_EQ(argumentOf(execRequest(channel).send().wait(io.waitScope).getResult()), bad);
  EXPECT_EQ(argumentOf(channel.diagRequest().send().wait(io.waitScope).getResult()), bad);

  start(false);
  auto strict = connect();
  EXPECT_EQ(result(open(strict, CID, 0)), bad);
}

TEST_F(Service, HasABoundOnChannels) {
  auto parser = connect();
  startGuest([](const channel::Message& request, const std::string&) { return pong(request); });
  std::vector<ChannelClient> channels;
  for (std::size_t i = 0; i < MAX_CHANNELS; ++i) {
    channels.push_back(open(parser));
    channels.back().whenResolved().wait(io.waitScope);
  }
  EXPECT_EQ(service->channels(), MAX_CHANNELS);
  auto over = open(parser);
  EXPECT_EQ(argumentOf(ping(over).getResult()), protocols::ArgumentError::TOO_MANY);
  channels.pop_back();
  until([&]() { return service->channels() < MAX_CHANNELS; });
  auto again = open(parser);
  EXPECT_TRUE(ping(again).getResult().isPong());
}

TEST_F(Service, HasABoundOnOperationsOfAllConnectionsTogether) {
  startGuest([](const channel::Message&, const std::string&) { return std::nullopt; });
  std::vector<kj::Promise<void>> pending;
  const auto hold = [&](ChannelClient& channel, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      auto request = channel.pingRequest();
      setId(request, static_cast<std::uint8_t>(pending.size() + 1));
      pending.push_back(request.send().ignoreResult().eagerlyEvaluate(nullptr));
    }
  };
  auto first = connect();
  auto firstChannel = open(first);
  auto second = connect();
  auto secondChannel = open(second);
  hold(firstChannel, 40);
  hold(secondChannel, MAX_OPERATIONS - 40);
  until([&]() { return service->operations() == MAX_OPERATIONS; });
  EXPECT_EQ(argumentOf(ping(secondChannel).getResult()), protocols::ArgumentError::TOO_MANY);
  // One ends, by being dropped: there is room again.
  pending.pop_back();
  until([&]() { return service->operations() < MAX_OPERATIONS; });
}

TEST_F(Service, DroppingACallClosesItsConnection) {
  startGuest([](const channel::Message&, const std::string&) { return std::nullopt; });
  auto parser = connect();
  auto channel = open(parser);
  {
    auto request = channel.pingRequest();
    setId(request);
    auto call = request.send().ignoreResult().eagerlyEvaluate(nullptr);
    until([&]() { return guest->open() == 1; });
  }
  until([&]() { return guest->open() == 0; });
  EXPECT_EQ(service->operations(), 0u);
}

TEST_F(Service, LosingTheCallerClosesItsConnections) {
  startGuest([](const channel::Message&, const std::string&) { return std::nullopt; });
  auto parser = connect();
  auto channel = open(parser);
  auto request = channel.pingRequest();
  setId(request);
  auto call = request.send().ignoreResult().eagerlyEvaluate([](kj::Exception&&) {});
  until([&]() { return guest->open() == 1; });
  connections[0].using_ = nullptr;
  connections[0].client = nullptr;
  until([&]() { return guest->open() == 0 && service->operations() == 0; });
}

TEST_F(Service, AWrongPeerIsTamperForEveryChannelToThatGuestEverAfter) {
  startGuest([](const channel::Message& request, const std::string&) { return pong(request); });
  auto parser = connect();
  const auto tamperOf = [&](ChannelClient channel) -> std::optional<protocols::TamperClass> {
    const auto response = ping(channel);
    if (!response.getResult().isFailure() || !response.getResult().getFailure().isTamper())
      return std::nullopt;
    EXPECT_EQ(response.getResult().getFailure().getTamper().getFrame().size(), 0u);
    return response.getResult().getFailure().getTamper().getClass();
  };
  // Positive control: the right uid is served.
  EXPECT_EQ(tamperOf(open(parser)), std::nullopt);
  EXPECT_EQ(guest->connections(), 1u);
  EXPECT_EQ(tamperOf(open(parser, CID, 4242)), protocols::TamperClass::PEER_MISMATCH);
  const unsigned dialled = guest->connections();
  EXPECT_EQ(tamperOf(open(parser)), protocols::TamperClass::PEER_MISMATCH);
  auto other = connect();
  EXPECT_EQ(tamperOf(open(other)), protocols::TamperClass::PEER_MISMATCH);
  EXPECT_EQ(guest->connections(), dialled);
}

TEST_F(Service, ATamperVerdictCarriesTheDigestOfTheFrame) {
  startGuest(
      [](const channel::Message&, const std::string&) { return std::string("\0\0\0\1Zx", 6); });
  auto parser = connect();
  auto channel = open(parser);
  const auto response = ping(channel);
  ASSERT_TRUE(response.getResult().isFailure());
  const auto failure = response.getResult().getFailure();
  EXPECT_EQ(failure.getTamper().getClass(), protocols::TamperClass::PROTOCOL_VIOLATION);
  EXPECT_EQ(failure.getTamper().getFrame().size(), 32u);
}

// A guest that runs `cat` on stdin and says something on stderr.
std::optional<std::string> cat(const channel::Message& request, const std::string& bulk) {
  if (std::holds_alternative<channel::Ack>(request.body))
    return tests::wire(request.id, channel::Ok{});
  const std::string out = bulk + "err";
  return tests::wire(request.id,
                     channel::ExecResult{.rc = 3,
                                         .stdoutSize = static_cast<std::int64_t>(bulk.size()),
                                         .stderrSize = 3,
                                         .dataSize = static_cast<std::int64_t>(out.size())},
                     out);
}

TEST_F(Service, ExecHandsOnBothStreams) {
  startGuest(cat);
  auto parser = connect();
  auto channel = open(parser);
  std::string input(300'000, '\0');
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<char>(i * 31);
  TestSink::Record output;
  TestSink::Record errors;
  auto request = execRequest(channel);
  request.getRequest().setStdinSize(input.size());
  request.setStdin(kj::heap<TestSource>(input));
  request.setStdout(sink(output));
  request.setStderr(sink(errors));
  const auto response = request.send().wait(io.waitScope);
  ASSERT_TRUE(response.getResult().isFinished());
  const auto finished = response.getResult().getFinished();
  EXPECT_EQ(finished.getRc(), 3);
  EXPECT_EQ(finished.getStdoutSize(), input.size());
  EXPECT_EQ(finished.getStderrSize(), 3u);
  EXPECT_EQ(finished.getDeliveries(), 1u);
  EXPECT_EQ(output.bytes, input);
  EXPECT_EQ(errors.bytes, "err");
  EXPECT_EQ(output.ends, 1u);
  EXPECT_EQ(errors.ends, 1u);
}

TEST_F(Service, FaultsOfTheCallersStreamsAreNotTheGuests) {
  startGuest(cat);
  auto parser = connect();
  auto channel = open(parser);
  TestSink::Record output;
  TestSink::Record errors;
  const auto streamOf = [&](std::uint64_t size, const std::string& content) {
    auto request = execRequest(channel);
    request.getRequest().setStdinSize(size);
    request.setStdin(kj::heap<TestSource>(content));
    request.setStdout(sink(output));
    request.setStderr(sink(errors));
    const auto response = request.send().wait(io.waitScope);
    EXPECT_TRUE(response.getResult().isFailure() && response.getResult().getFailure().isStream());
    return response.getResult().getFailure().getStream();
  };
  EXPECT_EQ(streamOf(10, "short"), protocols::StreamError::SOURCE_SHORT);
  output.fails = true;
  EXPECT_EQ(streamOf(5, "right"), protocols::StreamError::FAILED);

  auto request = execRequest(channel);
  const auto response = request.send().wait(io.waitScope);
  ASSERT_TRUE(response.getResult().isFailure());
  EXPECT_EQ(response.getResult().getFailure().getStream(), protocols::StreamError::FAILED);
}

TEST_F(Service, ASinkThatStallsHoldsTheGuestBack) {
  constexpr std::size_t SIZE = 8u << 20;
  startGuest([](const channel::Message& request, const std::string&) {
    return tests::wire(request.id,
                       channel::FileData{.size = SIZE, .dataSize = static_cast<std::int64_t>(SIZE)},
                       std::string(SIZE, 'x'));
  });
  auto parser = connect();
  auto channel = open(parser);
  TestSink::Record stalled{.stalls = true};
  auto request = channel.readFileRequest();
  setId(request);
  request.setPath("/big");
  request.setMaxBytes(SIZE);
  request.setContent(sink(stalled));
  auto call = request.send().ignoreResult().eagerlyEvaluate(nullptr);
  until([&]() { return stalled.writes == 1; });
  // Everything that can move has moved.
  for (int i = 0; i < 50; ++i)
    io.provider->getTimer().afterDelay(1 * kj::MILLISECONDS).wait(io.waitScope);
  EXPECT_EQ(stalled.writes, 1u);
  EXPECT_LE(connections[0].server->queuedBytes(), 2 * BULK_CHUNK);
  // And another operation is not held up by it.
  EXPECT_TRUE(parser.describeRequest().send().wait(io.waitScope).hasFacts());
}

TEST_F(Service, BulkThatComesByteByByteIsHandedOnInPieces) {
  constexpr std::size_t SIZE = 100'000;
  startGuest([](const channel::Message& request, const std::string&) {
    if (std::holds_alternative<channel::Ack>(request.body))
      return tests::wire(request.id, channel::Ok{});
    const std::string content(SIZE, 'd');
    std::string reply = tests::wire(
        request.id, channel::FileData{.size = SIZE, .dataSize = static_cast<std::int64_t>(SIZE)},
        content);
    // The control frame as it is; the same bulk in frames of one byte each.
    const auto size = (static_cast<std::size_t>(static_cast<unsigned char>(reply[2])) << 8) +
                      static_cast<unsigned char>(reply[3]);
    reply.resize(channel::FRAME_HEADER_SIZE + size);
    for (std::size_t i = 0; i < SIZE; ++i) reply += tests::rawData("d");
    return reply + tests::rawEnd(content);
  });
  auto parser = connect();
  auto channel = open(parser);
  TestSink::Record record;
  auto request = channel.readFileRequest();
  setId(request);
  request.setPath("/dribbled");
  request.setMaxBytes(SIZE);
  request.setContent(sink(record));
  EXPECT_TRUE(request.send().wait(io.waitScope).getResult().isContent());
  EXPECT_EQ(record.bytes, std::string(SIZE, 'd'));
  EXPECT_EQ(record.writes, 2u);
}

TEST_F(Service, WritesAFile) {
  std::string got;
  channel::WriteFile file;
  startGuest([&](const channel::Message& request, const std::string& bulk) {
    if (const auto* write = std::get_if<channel::WriteFile>(&request.body)) {
      got = bulk;
      file = *write;
    }
    return tests::wire(request.id, channel::Ok{});
  });
  auto parser = connect();
  auto channel = open(parser);
  auto request = channel.writeFileRequest();
  setId(request);
  request.setPath("dir/file");
  request.initMode().setBits(04750);
  request.setSize(100'000);
  const std::string content(100'000, 'c');
  request.setContent(kj::heap<TestSource>(content));
  const auto response = request.send().wait(io.waitScope);
  ASSERT_TRUE(response.getResult().isWritten());
  EXPECT_EQ(response.getResult().getWritten().getSha256().size(), 32u);
  EXPECT_EQ(got, content);
  EXPECT_EQ(file.path, "dir/file");
  EXPECT_EQ(file.mode, 04750);
}

TEST_F(Service, HandsOnDiagEntriesAsBytes) {
  startGuest([](const channel::Message& request, const std::string&) {
    return tests::wire(request.id,
                       channel::DiagResult{.entries = {{.tsMs = 5,
                                                        .level = channel::DiagLevel::ERROR,
                                                        .event = "accept-failed",
                                                        .requestId = std::nullopt,
                                                        .detail = "\x1b[31m<script>"}},
                                           .listenerRestarts = 2});
  });
  auto parser = connect();
  auto channel = open(parser);
  auto request = channel.diagRequest();
  setId(request);
  const auto response = request.send().wait(io.waitScope);
  ASSERT_TRUE(response.getResult().isReport());
  const auto report = response.getResult().getReport();
  EXPECT_EQ(report.getListenerRestarts(), 2u);
  ASSERT_EQ(report.getEntries().size(), 1u);
  EXPECT_EQ(report.getEntries()[0].getLevel(), protocols::DiagResult::Level::ERROR);
  EXPECT_EQ(report.getEntries()[0].getTsMs(), 5u);
  const auto detail = report.getEntries()[0].getDetail().asChars();
  EXPECT_EQ(std::string(detail.begin(), detail.size()), "\x1b[31m<script>");
}

TEST_F(Service, ALostGuestIsUnreachable) {
  auto parser = connect();
  auto channel = open(parser);
  const auto response = ping(channel);
  ASSERT_TRUE(response.getResult().isFailure());
  EXPECT_EQ(response.getResult().getFailure().getLoss(), protocols::LossClass::UNREACHABLE);
  EXPECT_EQ(response.getResult().getFailure().getDeliveries(), 0u);
}

}  // namespace
}  // namespace cordon::parser
