#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "services/guest/agent-fixture.h"

namespace cordon::guest {
namespace {

using channel::Error;
using channel::Exec;
using channel::ExecResult;

class ExecTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (!IsSkipped()) start();
  }
};

TEST_F(ExecTest, AnswersPingWithItsVersionAndSession) {
  auto first = ask(channel::Ping{}).as<channel::Pong>();
  auto second = ask(channel::Ping{}).as<channel::Pong>();
  EXPECT_EQ(first.daemon, "cordon-guest " CORDON_VERSION);
  EXPECT_EQ(first.protocol, 3);
  EXPECT_EQ(first.session, second.session);
  EXPECT_NE(first.session, channel::Id{});
  start();
  EXPECT_NE(ask(channel::Ping{}).as<channel::Pong>().session, first.session);
}

TEST_F(ExecTest, KeepsTheStreamsApart) {
  auto got = run("echo out; echo err >&2");
  ExecResult expected;
  expected.stdoutSize = 4;
  expected.stderrSize = 4;
  expected.dataSize = 8;
  EXPECT_EQ(got.as<ExecResult>(), expected);
  EXPECT_EQ(got.bulk, "out\nerr\n");
}

TEST_F(ExecTest, OmitsBulkWhereThereIsNoOutput) {
  EXPECT_EQ(run("exit 0").as<ExecResult>(), ExecResult{});
}

TEST_F(ExecTest, ReportsExitCodesAndSignals) {
  EXPECT_EQ(run("exit 70").as<ExecResult>().rc, 70);
  EXPECT_EQ(run("kill -TERM $$").as<ExecResult>().rc, -SIGTERM);
  EXPECT_EQ(run("kill -KILL $$").as<ExecResult>().rc, -SIGKILL);
}

TEST_F(ExecTest, WritesAndReadsAFile) {
  channel::WriteFile write;
  write.path = "note";
  write.dataSize = 5;
  ask(write, "hello").as<channel::Ok>();
  channel::ReadFile read;
  read.path = "note";
  auto got = ask(read);
  EXPECT_EQ(got.as<channel::FileData>(), (channel::FileData{5, false, 5}));
  EXPECT_EQ(got.bulk, "hello");
}

}  // namespace
}  // namespace cordon::guest
