// The shipped parser, sealed, in front of the shipped agent: every kind of operation over real
// sockets.
#include "tests/integration/sealed-parser.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kj/debug.h>

#include "common/channel/message.h"
#include "services/parser/testing/list-sinks.h"
#include "tests/support/hybrid-relay.h"
#include "tests/support/residue.h"
#include "tests/support/wire.h"

namespace cordon::tests {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t CID = 17;

class Sink final : public protocols::ByteSink::Server {
 public:
  explicit Sink(std::string& target, bool stallsForEver = false)
      : bytes(target), stalls(stallsForEver) {}
  kj::Promise<void> write(WriteContext context) override {
    const auto part = context.getParams().getBytes().asChars();
    bytes.append(part.begin(), part.size());
    if (stalls) return kj::NEVER_DONE;
    return kj::READY_NOW;
  }
  kj::Promise<void> end(EndContext) override { return kj::READY_NOW; }

 private:
  std::string& bytes;
  bool stalls;
};

class Source final : public protocols::ByteSource::Server {
 public:
  explicit Source(const std::string& all) : bytes(all) {}
  kj::Promise<void> read(ReadContext context) override {
    const auto params = context.getParams();
    const std::string part = bytes.substr(params.getOffset(), params.getSize());
    context.getResults().setBytes(kj::StringPtr(part.c_str(), part.size()).asBytes());
    return kj::READY_NOW;
  }

 private:
  const std::string& bytes;
};
// The agent on a Unix socket, as `uid`.
class Agent {
 public:
  explicit Agent(const std::string& path) : socket(path) {
    const pid_t parent = ::getpid();
    KJ_SYSCALL(pid = ::fork());
    if (pid == 0) {
      dieWith(parent);
      ::execl(CORDON_GUEST_BINARY, "cordon-guest", "--listen", ("unix:" + path).c_str(), nullptr);
      ::_exit(98);
    }
    while (!std::filesystem::exists(path)) {
      int status = 0;
      if (::waitpid(pid, &status, WNOHANG) != 0) {
        throw std::runtime_error("the agent ended: " + std::to_string(status));
      }
      ::usleep(1000);
    }
  }
  ~Agent() {
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    endCommandsOf(pid);
  }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  const std::string socket;

 private:
  pid_t pid = -1;
};

class SealedParserTest : public ::testing::Test {
 protected:
  ~SealedParserTest() noexcept override = default;

  void SetUp() override {
    if (::geteuid() != 0)
      GTEST_SKIP() << "SKIPPED(host-lacks:root): starts a process as a launcher does";
    sealed.emplace(ParserStart{.arguments = {"--allow-root-peer"}});
    ASSERT_TRUE(sealed->waitSealed()) << sealed->log();
    const std::string guest = sealed->guestSocket(CID);
    agent.emplace(guest + ".agent");
    relay.emplace(RelayAddress{.hybrid = guest, .agent = agent->socket, .uid = 0});
    connection.emplace(io, *sealed);
  }
  // The parser's own log stands in the way only where a test failed.
  void TearDown() override {
    if (HasFailure() && sealed) std::fputs(sealed->log().c_str(), stderr);
  }

  template <typename Request>
  void setId(Request& request) {
    const auto id = idOf(++requests);
    request.setId(kj::arrayPtr(id.bytes.data(), id.bytes.size()));
  }
  struct Result {
    std::optional<int> rc;
    std::string out;
    std::string err;
    std::string digest;
  };
  Result run(protocols::GuestChannel::Client& channel, std::initializer_list<kj::StringPtr> argv,
             const std::string* input = nullptr) {
    Result result;
    auto request = channel.execRequest();
    setId(request);
    auto words = request.initRequest().initArgv(static_cast<capnp::uint>(argv.size()));
    capnp::uint index = 0;
    for (const auto word : argv) words.set(index++, word);
    if (input != nullptr) {
      request.getRequest().setStdinSize(input->size());
      request.setStdin(kj::heap<Source>(*input));
    }
    request.setStdout(kj::heap<Sink>(result.out));
    request.setStderr(kj::heap<Sink>(result.err));
    const auto response = request.send().wait(io.waitScope);
    if (!response.getResult().isFinished()) return result;
    const auto finished = response.getResult().getFinished();
    result.rc = finished.getRc();
    result.digest = hex(finished.getStdoutSha256());
    return result;
  }
  static std::string hex(capnp::Data::Reader bytes) {
    channel::Sha256 digest{};
    KJ_REQUIRE(bytes.size() == digest.size());
    std::copy(bytes.begin(), bytes.end(), digest.begin());
    return channel::toHex(digest);
  }

  std::uint8_t requests = 0;
  kj::AsyncIoContext io = kj::setupAsyncIo();
  std::optional<SealedParser> sealed;
  std::optional<Agent> agent;
  std::optional<HybridRelay> relay;
  std::optional<ParserConnection> connection;
};

TEST_F(SealedParserTest, SaysUnderWhichPolicyItRuns) {
  const auto response = connection->parser.describeRequest().send().wait(io.waitScope);
  EXPECT_EQ(std::string(response.getFacts().getPolicy().cStr()), "parser-channel");
  EXPECT_THAT(sealed->log(), HasSubstr("sha256=" + hex(response.getFacts().getPolicySha256())));
}

TEST_F(SealedParserTest, PingsPinsAndDiagnoses) {
  auto channel = connection->open(CID, 0);
  auto ping = channel.pingRequest();
  setId(ping);
  const auto pong = ping.send().wait(io.waitScope);
  ASSERT_TRUE(pong.getResult().isPong());
  auto pin = channel.pinSessionRequest();
  setId(pin);
  const auto pinned = pin.send().wait(io.waitScope);
  ASSERT_TRUE(pinned.getResult().isPong());
  EXPECT_TRUE(pong.getResult().getPong().getSession() == pinned.getResult().getPong().getSession());
  auto diag = channel.diagRequest();
  setId(diag);
  const auto report = diag.send().wait(io.waitScope);
  ASSERT_TRUE(report.getResult().isReport());
  EXPECT_GE(report.getResult().getReport().getEntries().size(), 2u);
}

TEST_F(SealedParserTest, RunsCommands) {
  auto channel = connection->open(CID, 0);
  const auto said = run(channel, {"/bin/sh", "-c", "echo out; echo err >&2; exit 7"});
  EXPECT_EQ(said.rc, 7);
  EXPECT_EQ(said.out, "out\n");
  EXPECT_EQ(said.err, "err\n");
  EXPECT_EQ(run(channel, {"/bin/sh", "-c", "kill -9 $$"}).rc, -9);
  EXPECT_EQ(run(channel, {"/no/such/thing"}).rc, 127);
}

TEST_F(SealedParserTest, HandsStdinThrough) {
  auto channel = connection->open(CID, 0);
  std::string input(3'000'000, '\0');
  for (std::size_t i = 0; i < input.size(); ++i)
    input[i] = static_cast<char>((i * 2654435761u) >> 13);
  const auto copied = run(channel, {"cat"}, &input);
  EXPECT_EQ(copied.rc, 0);
  EXPECT_TRUE(copied.out == input);
  EXPECT_EQ(copied.digest, sha256Hex(input));
}

TEST_F(SealedParserTest, WritesAndReadsFiles) {
  auto channel = connection->open(CID, 0);
  const std::string file = sealed->guestSocket(CID) + ".file";
  const std::string content(1'000'000, 'c');
  auto write = channel.writeFileRequest();
  setId(write);
  write.setPath(file.c_str());
  write.initMode().setBits(0640);
  write.setSize(content.size());
  write.setContent(kj::heap<Source>(content));
  const auto written = write.send().wait(io.waitScope);
  ASSERT_TRUE(written.getResult().isWritten());
  EXPECT_EQ(hex(written.getResult().getWritten().getSha256()), sha256Hex(content));

  const auto readBack = [&](std::uint64_t most, std::string& bytes) {
    auto read = channel.readFileRequest();
    setId(read);
    read.setPath(file.c_str());
    read.setMaxBytes(most);
    read.setContent(kj::heap<Sink>(bytes));
    return read.send().wait(io.waitScope);
  };
  std::string whole;
  const auto read = readBack(content.size(), whole);
  ASSERT_TRUE(read.getResult().isContent());
  EXPECT_TRUE(whole == content);
  EXPECT_EQ(hex(read.getResult().getContent().getSha256()), sha256Hex(content));

  std::string part;
  const auto limited = readBack(4096, part);
  ASSERT_TRUE(limited.getResult().isFailure());
  EXPECT_EQ(limited.getResult().getFailure().getFileLimit(), 4096u);
  EXPECT_EQ(part.size(), 4096u);

  auto missing = channel.readFileRequest();
  setId(missing);
  missing.setPath((file + ".none").c_str());
  missing.setMaxBytes(1);
  std::string nothing;
  missing.setContent(kj::heap<Sink>(nothing));
  const auto failed = missing.send().wait(io.waitScope);
  ASSERT_TRUE(failed.getResult().isFailure() && failed.getResult().getFailure().isGuest());
  EXPECT_EQ(std::string(failed.getResult().getFailure().getGuest().getErrno().cStr()), "ENOENT");
}

// Each kind of record out of a guest, under the policy of the channel.
TEST_F(SealedParserTest, ReadsRecords) {
  auto channel = connection->open(CID, 0);
  const std::string stem = sealed->guestSocket(CID);
  const std::string script = R"(
    printf '<testsuite name="s"><testcase classname="c" name="n">' >$0.xml
    printf '<failure message="m"/></testcase></testsuite>' >>$0.xml
    printf '{"v":1,"run":"00112233445566778899aabbccddeeff","seq":1,"check":"c",' >$0.verdicts
    printf '"outcome":"pass","observed_ms":1,"tier":"T3"}\n' >>$0.verdicts
    printf '{"v":1,"source":"dns","epoch":1,"seq":1,"window_ms":[0,10],"events":1,' >$0.marks
    printf '"bytes":2,"dropped":0,"backlog":0,"alive_since_ms":0,"final":true}\n' >>$0.marks)";
  ASSERT_EQ(run(channel, {"/bin/sh", "-c", script.c_str(), stem.c_str()}).rc, 0);

  CaseList cases;
  auto junit = channel.readJunitRequest();
  setId(junit);
  junit.setPath((stem + ".xml").c_str());
  junit.setCases(cases.sink());
  const auto report = junit.send().wait(io.waitScope);
  ASSERT_TRUE(report.getResult().isReport());
  EXPECT_EQ(report.getResult().getReport().getStatus(), protocols::RecordStatus::OK);
  EXPECT_EQ(report.getResult().getReport().getFailed(), 1u);
  EXPECT_FALSE(report.getResult().getReport().getGreen());
  ASSERT_EQ(cases.cases.size(), 1u);
  EXPECT_EQ(cases.cases[0].name, "n");

  VerdictList verdicts;
  auto oracle = channel.readVerdictsRequest();
  setId(oracle);
  oracle.setPath((stem + ".verdicts").c_str());
  oracle.setVerdicts(verdicts.sink());
  const auto said = oracle.send().wait(io.waitScope);
  ASSERT_TRUE(said.getResult().isReport());
  EXPECT_TRUE(said.getResult().getReport().getGreen());
  ASSERT_EQ(verdicts.records.size(), 1u);
  EXPECT_EQ(verdicts.records[0].check, "c");

  auto poll = channel.pollCoverageRequest();
  auto plan = poll.initRequest();
  plan.setIntervalMs(100);
  plan.setSilenceMs(60'000);
  auto sources = plan.initSources(2);
  sources[0].setName("dns");
  sources[0].setPath((stem + ".marks").c_str());
  sources[1].setName("web");
  sources[1].setPath((stem + ".none").c_str());
  auto poller = poll.send().wait(io.waitScope).getPoller();
  auto ask = poller.reportRequest();
  auto bounds = ask.initWindow().initBounds();
  bounds.setFromMs(2);
  bounds.setToMs(8);
  const auto covered = ask.send().wait(io.waitScope);
  ASSERT_TRUE(covered.getResult().isReport());
  const auto coverage = covered.getResult().getReport().getCoverage();
  EXPECT_EQ(coverage.getAnswer(), protocols::CoverageAnswer::INCOMPLETE);
  ASSERT_EQ(coverage.getSources().size(), 2u);
  EXPECT_EQ(coverage.getSources()[0].getAnswer(), protocols::CoverageAnswer::COMPLETE);
  EXPECT_EQ(coverage.getSources()[1].getAnswer(), protocols::CoverageAnswer::INCOMPLETE);
}

TEST_F(SealedParserTest, ACommandOverItsTimeEndsWithWhatItSaid) {
  auto channel = connection->open(CID, 0);
  std::string out;
  std::string err;
  auto request = channel.execRequest();
  setId(request);
  auto argv = request.initRequest().initArgv(3);
  argv.set(0, "/bin/sh");
  argv.set(1, "-c");
  argv.set(2, "echo begun; sleep 100");
  request.getRequest().initBudget().setCommandMs(300);
  request.setStdout(kj::heap<Sink>(out));
  request.setStderr(kj::heap<Sink>(err));
  const auto response = request.send().wait(io.waitScope);
  ASSERT_TRUE(response.getResult().isFailure() && response.getResult().getFailure().isBudget());
  const auto budget = response.getResult().getFailure().getBudget();
  EXPECT_EQ(budget.getLayer(), protocols::BudgetLayer::COMMAND);
  const auto partial = budget.getPartial().asChars();
  EXPECT_EQ(std::string(partial.begin(), partial.size()), "begun\n");
}

TEST_F(SealedParserTest, AForeignSocketIsTamperAndIsNotDialledAgain) {
  auto honest = connection->open(CID, 0);
  EXPECT_EQ(run(honest, {"true"}).rc, 0);
  const unsigned before = relay->connections();
  const auto verdict = [&](uid_t uid) {
    auto channel = connection->open(CID, uid);
    auto ping = channel.pingRequest();
    setId(ping);
    const auto response = ping.send().wait(io.waitScope);
    EXPECT_TRUE(response.getResult().isFailure() && response.getResult().getFailure().isTamper());
    return response.getResult().getFailure().getTamper().getClass();
  };
  EXPECT_EQ(verdict(4242), protocols::TamperClass::PEER_MISMATCH);
  EXPECT_EQ(verdict(0), protocols::TamperClass::PEER_MISMATCH);
  EXPECT_LE(relay->connections(), before + 1);
}

TEST_F(SealedParserTest, AConnectionThatItRefusesDoesNotStopIt) {
  // Garbage on one connection, another goes on.
  auto address = io.provider->getNetwork()
                     .parseAddress(kj::str("unix:", sealed->socket().c_str()))
                     .wait(io.waitScope);
  auto bad = address->connect().wait(io.waitScope);
  const std::uint32_t wrapped[] = {0xffffffff, 0};
  bad->write(wrapped, sizeof(wrapped)).wait(io.waitScope);
  // Cap'n Proto says an abort, by a code, before it hangs up.
  const auto last = bad->readAllBytes(4096).wait(io.waitScope);
  EXPECT_THAT(std::string(last.asChars().begin(), last.size()), HasSubstr("cordon:bad-message"));
  auto channel = connection->open(CID, 0);
  EXPECT_EQ(run(channel, {"true"}).rc, 0);
  EXPECT_THAT(sealed->log(), HasSubstr("peer.ended uid=0 reason=bad-message"));
}

TEST_F(SealedParserTest, LogsOperationsByTheirIdAndNothingOfTheGuest) {
  auto channel = connection->open(CID, 0);
  const auto result = run(channel, {"/bin/sh", "-c", "printf 'secret\\n<0>forged'"});
  ASSERT_EQ(result.rc, 0);
  EXPECT_THAT(sealed->log(), HasSubstr(" operation.ended request="));
  EXPECT_EQ(sealed->log().find("forged"), std::string::npos);
}

// What a guest sends that nobody takes stays in the guest: 64 MiB would be seen here.
TEST_F(SealedParserTest, AStalledSinkDoesNotFillTheMemory) {
  auto channel = connection->open(CID, 0);
  const std::string file = sealed->guestSocket(CID) + ".big";
  {
    const kj::AutoCloseFd made(::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    KJ_SYSCALL(::ftruncate(made, 64 << 20));
  }
  const std::size_t atRest = sealed->memory("VmRSS");
  std::string got;
  auto read = channel.readFileRequest();
  setId(read);
  read.setPath(file.c_str());
  read.setMaxBytes(64u << 20);
  read.setContent(kj::heap<Sink>(got, true));
  auto call = read.send().ignoreResult().eagerlyEvaluate(nullptr);
  while (got.empty()) io.provider->getTimer().afterDelay(1 * kj::MILLISECONDS).wait(io.waitScope);
  // Until nothing moves any more, neither in the parser nor behind it.
  std::size_t last = 0;
  for (std::size_t now = sealed->memory("VmRSS"); now != last; now = sealed->memory("VmRSS")) {
    last = now;
    io.provider->getTimer().afterDelay(300 * kj::MILLISECONDS).wait(io.waitScope);
  }
  RecordProperty("at_rest_kb", static_cast<int>(atRest));
  RecordProperty("stalled_kb", static_cast<int>(last));
  std::printf("VmRSS at rest %zu kB, with a stalled sink %zu kB\n", atRest, last);
  // A sanitizer keeps what was freed.
#ifdef CORDON_SANITIZED
  constexpr std::size_t BOUND = 16384;
#else
  constexpr std::size_t BOUND = 2048;
#endif
  EXPECT_LT(last, atRest + BOUND);
  EXPECT_LE(got.size(), 262144u);
  // It serves others meanwhile.
  EXPECT_EQ(run(channel, {"true"}).rc, 0);
}

}  // namespace
}  // namespace cordon::tests
