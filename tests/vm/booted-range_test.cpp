// A command runs in a real VM, through the sandboxed parser.
#include "tests/vm/booted-range.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <openssl/sha.h>

#include "deploy/guest-exec/failure-text.h"
#include "services/parser/testing/list-sinks.h"

namespace cordon::vm {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

std::string sha256Of(kj::ArrayPtr<const kj::byte> bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(bytes.begin(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string textOf(capnp::Data::Reader data) {
  return {reinterpret_cast<const char*>(data.begin()), data.size()};
}

// Bytes without a period that a chunk's size could hide in.
kj::Array<kj::byte> patternOf(std::size_t size) {
  auto bytes = kj::heapArray<kj::byte>(size);
  std::uint32_t state = 2463534242;
  for (kj::byte& each : bytes) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    each = static_cast<kj::byte>(state);
  }
  return bytes;
}

class BootedRangeTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (geteuid() != 0) return;
    range = std::make_unique<BootedRange>(RangeOptions{.guests = 2, .memoryMib = 512});
  }
  static void TearDownTestSuite() { range.reset(); }
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "SKIPPED(host-lacks:root): guests need root";
    ASSERT_TRUE(range) << "the range did not boot";
  }
  void TearDown() override {
    if (HasFailure() && range) std::cerr << range->logs();
  }
  static deploy::ExecOutcome exec(const deploy::ExecRequest& request, unsigned guest = 0) {
    auto channel = range->channel(guest);
    return range->client().exec(channel, request);
  }
  static deploy::ExecOutcome shell(const std::string& script, const std::string& user = "agent") {
    return exec({.argv = {"sh", "-c", script}, .user = user});
  }
  static std::unique_ptr<BootedRange> range;
};
std::unique_ptr<BootedRange> BootedRangeTest::range;

TEST_F(BootedRangeTest, ACommandRunsInTheGuest) {
  deploy::ExecOutcome outcome = exec({.argv = {"uname", "-a"}});
  ASSERT_EQ(outcome.failure, std::nullopt);
  EXPECT_EQ(outcome.rc, 0);
  EXPECT_EQ(outcome.deliveries, 1u);
  EXPECT_THAT(outcome.out, MatchesRegex("Linux guest0 6\\.1\\.[^\n]* x86_64 GNU/Linux\n"));
  EXPECT_EQ(outcome.err, "");
}

TEST_F(BootedRangeTest, TheDefaultUserIsAgent) {
  EXPECT_EQ(exec({.argv = {"id"}}).out, "uid=1000(agent) gid=1000(agent) groups=1000(agent)\n");
  EXPECT_EQ(exec({.argv = {"id", "-un"}, .user = "root"}).out, "root\n");
  deploy::ExecOutcome outcome = exec({.argv = {"sh", "-c", "pwd; id -un; echo $ANSWER"},
                                      .cwd = "/srv",
                                      .user = "postgres",
                                      .env = {{"ANSWER", "42"}}});
  EXPECT_EQ(outcome.out, "/srv\npostgres\n42\n");
}

TEST_F(BootedRangeTest, StreamsAndCodesStayApart) {
  deploy::ExecOutcome outcome = shell("echo out; echo err >&2; exit 7");
  EXPECT_EQ(outcome.rc, 7);
  EXPECT_EQ(outcome.out, "out\n");
  EXPECT_EQ(outcome.err, "err\n");
  EXPECT_EQ(shell("kill -9 $$").rc, -9);
  EXPECT_EQ(exec({.argv = {"no-such-command"}}).rc, 127);
}

// A time-out kills by cgroup what a process group would have let go.
TEST_F(BootedRangeTest, ATimeOutReachesAChildInASessionOfItsOwn) {
  // The control: without a time-out such a child lives on.
  ASSERT_EQ(shell("setsid sleep 4711 </dev/null >/dev/null 2>&1 &").failure, std::nullopt);
  ASSERT_EQ(shell("ps | grep 'sleep 471[1]'").rc, 0);
  EXPECT_EQ(shell("kill $(ps | grep 'sleep 471[1]' | awk '{print $1}')").rc, 0);

  deploy::ExecRequest request{
      .argv = {"sh", "-c", "setsid sleep 4712 </dev/null >/dev/null 2>&1 & echo begun; sleep 4713"},
      .commandMs = 1500};
  EXPECT_EQ(exec(request).failure, "budget(command)");
  EXPECT_EQ(shell("ps | grep 'sleep 471[23]'").rc, 1);

  auto diag = range->channel(0).diagRequest();
  diag.setId(deploy::newRequestId());
  auto response = diag.send().wait(range->io().waitScope);
  ASSERT_TRUE(response.getResult().isReport());
  std::vector<std::string> kills;
  for (auto entry : response.getResult().getReport().getEntries()) {
    if (textOf(entry.getEvent()) == "exec-budget-killed")
      kills.push_back(textOf(entry.getDetail()));
    EXPECT_NE(textOf(entry.getEvent()), "cgroup-unavailable") << textOf(entry.getDetail());
  }
  EXPECT_THAT(kills, Contains(HasSubstr("its cgroup was killed")));
}

TEST_F(BootedRangeTest, SixtyFourMebibytesGoInAndComeBack) {
  const auto content = patternOf(64u << 20);
  const std::string digest = sha256Of(content);
  auto channel = range->channel(0);
  auto write = channel.writeFileRequest();
  write.setId(deploy::newRequestId());
  write.setPath("/tmp/large");
  write.setSize(content.size());
  write.setContent(kj::heap<deploy::MemorySource>(content.asPtr()));
  {
    auto response = write.send().wait(range->io().waitScope);
    ASSERT_TRUE(response.getResult().isWritten())
        << deploy::describe(response.getResult().getFailure());
    EXPECT_EQ(textOf(response.getResult().getWritten().getSha256()), digest);
    EXPECT_EQ(response.getResult().getWritten().getDeliveries(), 1u);
  }
  EXPECT_THAT(shell("wc -c </tmp/large").out, HasSubstr("67108864\n"));

  std::string back;
  auto read = channel.readFileRequest();
  read.setId(deploy::newRequestId());
  read.setPath("/tmp/large");
  read.setMaxBytes(content.size());
  read.setContent(kj::heap<deploy::MemorySink>(back, content.size()));
  {
    auto response = read.send().wait(range->io().waitScope);
    ASSERT_TRUE(response.getResult().isContent())
        << deploy::describe(response.getResult().getFailure());
    EXPECT_EQ(response.getResult().getContent().getSize(), content.size());
    EXPECT_EQ(textOf(response.getResult().getContent().getSha256()), digest);
  }
  EXPECT_EQ(sha256Of(kj::arrayPtr(reinterpret_cast<const kj::byte*>(back.data()), back.size())),
            digest);
  EXPECT_EQ(shell("rm /tmp/large").rc, 0);
}

// What a guest says of itself, while it goes on saying it.
TEST_F(BootedRangeTest, ReadsTheGuestsRecords) {
  ASSERT_EQ(shell("{ echo '<testsuites>'; for i in $(seq 500); do echo \"<testsuite "
                  "name='s'><testcase name='n$i'/>"
                  "</testsuite>\"; done; echo '</testsuites>'; } >/tmp/junit.xml")
                .rc,
            0);
  tests::CaseList cases;
  auto channel = range->channel(0);
  auto junit = channel.readJunitRequest();
  junit.setId(deploy::newRequestId());
  junit.setPath("/tmp/junit.xml");
  junit.setCases(cases.sink());
  const auto report = junit.send().wait(range->io().waitScope);
  ASSERT_TRUE(report.getResult().isReport()) << deploy::describe(report.getResult().getFailure());
  EXPECT_TRUE(report.getResult().getReport().getGreen());
  EXPECT_EQ(report.getResult().getReport().getPassed(), 500u);
  ASSERT_EQ(cases.cases.size(), 500u);
  EXPECT_EQ(cases.cases[499].name, "n500");

  ASSERT_EQ(shell(R"(for i in 1 2 4; do
    printf '{"v":1,"run":"00112233445566778899aabbccddeeff","seq":%d,"check":"c",' $i
    printf '"outcome":"pass","observed_ms":1,"tier":"T3"}\n'; done >/tmp/verdicts.jsonl)")
                .rc,
            0);
  tests::VerdictList verdicts;
  auto oracle = channel.readVerdictsRequest();
  oracle.setId(deploy::newRequestId());
  oracle.setPath("/tmp/verdicts.jsonl");
  oracle.setVerdicts(verdicts.sink());
  const auto said = oracle.send().wait(range->io().waitScope);
  ASSERT_TRUE(said.getResult().isReport());
  EXPECT_EQ(said.getResult().getReport().getPassed(), 3u);
  ASSERT_EQ(said.getResult().getReport().getFindings().size(), 1u);
  EXPECT_EQ(said.getResult().getReport().getFindings()[0], protocols::RecordFinding::SEQUENCE_GAP);
  EXPECT_FALSE(said.getResult().getReport().getGreen());

  // A source that vouches for each hundredth of a second of its own time, on and on.
  ASSERT_EQ(shell(R"(cat >/tmp/source <<'END'
    i=1
    while :; do
      printf '{"v":1,"source":"dns","epoch":1,"seq":%d,' $i
      printf '"window_ms":[%d,%d],' $((i * 10)) $((i * 10 + 10))
      printf '"events":1,"bytes":2,"dropped":0,"backlog":0,"alive_since_ms":0}\n'
      i=$((i + 1)); sleep 0.1
    done >>/tmp/dns.marks
END
    setsid sh /tmp/source </dev/null >/dev/null 2>&1 & echo $! >/tmp/source.pid; sleep 1)")
                .rc,
            0);
  auto poll = channel.pollCoverageRequest();
  auto plan = poll.initRequest();
  plan.setIntervalMs(200);
  plan.setSilenceMs(30'000);
  auto sources = plan.initSources(1);
  sources[0].setName("dns");
  sources[0].setPath("/tmp/dns.marks");
  auto poller = poll.send().wait(range->io().waitScope).getPoller();
  const auto answerFor = [&](std::int64_t from, std::int64_t to) {
    auto ask = poller.reportRequest();
    auto bounds = ask.initWindow().initBounds();
    bounds.setFromMs(from);
    bounds.setToMs(to);
    return ask.send().wait(range->io().waitScope);
  };
  const auto early = answerFor(10, 30);
  ASSERT_TRUE(early.getResult().isReport());
  EXPECT_EQ(early.getResult().getReport().getCoverage().getAnswer(),
            protocols::CoverageAnswer::COMPLETE);
  const auto beyond = answerFor(10, 1'000'000);
  ASSERT_TRUE(beyond.getResult().isReport());
  EXPECT_EQ(beyond.getResult().getReport().getCoverage().getAnswer(),
            protocols::CoverageAnswer::INCOMPLETE);

  // Its past is changed.
  ASSERT_EQ(shell("kill $(cat /tmp/source.pid); sleep 0.3").rc, 0);
  ASSERT_EQ(shell("sed -i 's/\"events\":1/\"events\":2/' /tmp/dns.marks").rc, 0);
  const auto rewritten = answerFor(10, 30);
  ASSERT_TRUE(rewritten.getResult().isReport());
  const auto coverage = rewritten.getResult().getReport().getCoverage();
  EXPECT_EQ(coverage.getAnswer(), protocols::CoverageAnswer::CONTRADICTORY);
  std::vector<protocols::RecordFinding> findings;
  for (const auto finding : coverage.getFindings()) findings.push_back(finding);
  EXPECT_THAT(findings, Contains(protocols::RecordFinding::REWRITTEN));
}

TEST_F(BootedRangeTest, FortyMebibytesOfInputArriveWhole) {
  const auto input = patternOf(40u << 20);
  deploy::ExecOutcome outcome =
      exec({.argv = {"wc", "-c"}, .commandMs = 120'000, .input = input.asPtr()});
  ASSERT_EQ(outcome.failure, std::nullopt);
  EXPECT_THAT(outcome.out, HasSubstr("41943040"));
}

TEST_F(BootedRangeTest, TwoGuestsWorkAtOnceAndAreTwo) {
  auto begin = std::chrono::steady_clock::now();
  std::vector<kj::Promise<std::string>> answers;
  std::array<std::string, 2> outputs;
  std::array<std::string, 2> errors;
  for (unsigned guest = 0; guest < 2; ++guest) {
    auto call = range->channel(guest).execRequest();
    call.setId(deploy::newRequestId());
    auto argv = call.getRequest().initArgv(3);
    argv.set(0, "sh");
    argv.set(1, "-c");
    // Each waits for time that the other uses too.
    argv.set(2, "sleep 5; hostname");
    call.setStdout(kj::heap<deploy::MemorySink>(outputs.at(guest), 4096));
    call.setStderr(kj::heap<deploy::MemorySink>(errors.at(guest), 4096));
    answers.push_back(call.send().then([](auto response) -> std::string {
      return response.getResult().isFinished()
                 ? "finished"
                 : deploy::describe(response.getResult().getFailure());
    }));
  }
  for (auto& answer : answers) EXPECT_EQ(answer.wait(range->io().waitScope), "finished");
  auto elapsed = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(outputs[0], "guest0\n");
  EXPECT_EQ(outputs[1], "guest1\n");
  // One after the other they would take ten.
  EXPECT_LT(elapsed, std::chrono::milliseconds(9500));
}

// From the host's /proc: what each process of the range is left with.
void expectConfined(const HostProcess& process, std::uint32_t uid, bool seccomp) {
  SCOPED_TRACE(process.name + " " + std::to_string(process.pid));
  const std::string id = std::to_string(uid);
  const std::string four = id + "\t" + id + "\t" + id + "\t" + id;
  EXPECT_EQ(statusLine(process.pid, "Uid"), four);
  EXPECT_EQ(statusLine(process.pid, "Gid"), four);
  EXPECT_EQ(statusLine(process.pid, "Groups"), "");
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    EXPECT_EQ(statusLine(process.pid, set), "0000000000000000") << set;
  }
  EXPECT_EQ(statusLine(process.pid, "NoNewPrivs"), "1");
  EXPECT_EQ(statusLine(process.pid, "Seccomp"), seccomp ? "2" : "0");

  const std::string proc = "/proc/" + std::to_string(process.pid);
  for (const char* space : {"net", "mnt", "pid", "ipc", "uts", "cgroup"}) {
    EXPECT_NE(std::filesystem::read_symlink(proc + "/ns/" + space),
              std::filesystem::read_symlink(std::string("/proc/self/ns/") + space))
        << space;
  }
  std::ifstream devices(proc + "/net/dev");
  std::string line;
  std::vector<std::string> interfaces;
  while (std::getline(devices, line)) {
    std::size_t colon = line.find(':');
    if (colon != std::string::npos)
      interfaces.push_back(
          line.substr(line.find_first_not_of(' '), colon - line.find_first_not_of(' ')));
  }
  EXPECT_THAT(interfaces, ElementsAre("lo"));
}

std::string netOf(const HostProcess& process) {
  return std::filesystem::read_symlink("/proc/" + std::to_string(process.pid) + "/ns/net");
}

TEST_F(BootedRangeTest, EveryProcessOfTheRangeIsConfined) {
  std::set<std::string> networks;
  std::size_t processes = 0;
  for (unsigned guest = 0; guest < 2; ++guest) {
    std::multiset<std::string> names;
    for (const HostProcess& process : processesOf(range->uid(guest))) {
      const bool attendant = process.name == "cordon-launch";
      expectConfined(process, range->uid(guest), !attendant);
      names.insert(process.name);
      if (!attendant) networks.insert(netOf(process));
      if (!attendant) ++processes;
    }
    EXPECT_THAT(names,
                ElementsAre("cordon-launch", "cordon-launch", "cordon-vsock", "qemu-system-x86"));
  }
  std::multiset<std::string> names;
  for (const HostProcess& process : processesOf(range->parserUid())) {
    const bool attendant = process.name == "cordon-launch";
    expectConfined(process, range->parserUid(), !attendant);
    names.insert(process.name);
    if (!attendant) networks.insert(netOf(process));
    if (!attendant) ++processes;
  }
  EXPECT_THAT(names, ElementsAre("cordon-launch", "cordon-parser"));
  EXPECT_EQ(processes, 5u);
  EXPECT_EQ(networks.size(), processes) << "two processes share a network namespace";
  EXPECT_NE(range->parserUid(), 0u);
}

TEST_F(BootedRangeTest, TheGuestsConsoleIsKept) {
  EXPECT_EQ(shell("echo said-on-the-console >/dev/console", "root").rc, 0);
  // The console is written by the VMM and copied by the launcher, each in its own time.
  for (int i = 0; i < 1000 && range->logs().find("said-on-the-console") == std::string::npos; ++i) {
    usleep(10'000);
  }
  EXPECT_THAT(range->logs(), HasSubstr("said-on-the-console"));
}

}  // namespace
}  // namespace cordon::vm
