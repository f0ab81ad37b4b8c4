// What the service itself does for records: bounds over all connections, refused arguments, and
// the calls as a caller sees them. What is made of files is tested beside guest-records.cpp and
// coverage-poller.cpp.
#include <cstdint>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <kj/async-io.h>

#include "common/channel/message.h"
#include "services/parser/parser-service.h"
#include "services/parser/testing/hybrid-guest.h"
#include "services/parser/testing/list-sinks.h"
#include "services/parser/testing/watermarks.h"
#include "tests/support/temporary-directory.h"
#include "tests/support/wire.h"

namespace cordon::parser {
namespace {

using tests::HybridGuest;
using tests::idOf;

constexpr std::uint32_t CID = 7;

class RecordService : public ::testing::Test {
 protected:
  RecordService()
      : service(*io.lowLevelProvider, io.provider->getTimer(), ids, log,
                {.socketsDirectory = directory.path, .allowRootPeer = true}) {}
  ~RecordService() noexcept override = default;

  // A guest whose every file holds `content`; where there is none it holds its answers back.
  void startGuest(std::optional<std::string> content) {
    guest.emplace(io, directory / (std::to_string(CID) + "/vsock.sock"),
                  [content = std::move(content)](const channel::Message& request,
                                                 const std::string&) -> std::optional<std::string> {
                    if (!std::holds_alternative<channel::ReadFile>(request.body))
                      return tests::wire(request.id, channel::Ok{});
                    if (!content) return std::nullopt;
                    const auto size = static_cast<std::int64_t>(content->size());
                    return tests::wire(request.id,
                                       channel::FileData{.size = size, .dataSize = size}, *content);
                  });
  }
  protocols::GuestChannel::Client open(std::uint32_t cid = CID) {
    auto request = parser.openChannelRequest();
    request.initGuest().setCid(cid);
    request.getGuest().setUid(::geteuid());
    return request.send().getChannel();
  }
  auto junit(protocols::GuestChannel::Client& channel, const char* path = "/f") {
    auto request = channel.readJunitRequest();
    const auto id = idOf(++requests);
    request.setId(kj::arrayPtr(id.bytes.data(), id.bytes.size()));
    request.setPath(path);
    request.setCases(cases.sink());
    return request.send();
  }
  protocols::CoveragePoller::Client poll(protocols::GuestChannel::Client& channel,
                                         const std::vector<std::string>& names,
                                         std::uint32_t intervalMs = 100,
                                         std::uint32_t silenceMs = 100) {
    auto request = channel.pollCoverageRequest();
    auto plan = request.initRequest();
    auto sources = plan.initSources(static_cast<capnp::uint>(names.size()));
    for (capnp::uint i = 0; i < sources.size(); ++i) {
      sources[i].setName(names[i].c_str());
      sources[i].setPath("/f");
    }
    plan.setIntervalMs(intervalMs);
    plan.setSilenceMs(silenceMs);
    return request.send().getPoller();
  }
  protocols::ArgumentError refusalOf(protocols::CoveragePoller::Client poller) {
    const auto response = poller.reportRequest().send().wait(io.waitScope);
    EXPECT_TRUE(response.getResult().isFailure() && response.getResult().getFailure().isArgument());
    return response.getResult().getFailure().getArgument();
  }
  void wait(kj::Duration time) { io.provider->getTimer().afterDelay(time).wait(io.waitScope); }

  kj::AsyncIoContext io = kj::setupAsyncIo();
  tests::TemporaryDirectory directory;
  KernelIdSource ids;
  log::Log log = log::Log::forService("records-test");
  std::optional<HybridGuest> guest;
  tests::CaseList cases;
  ParserService service;
  protocols::Parser::Client parser = service.client();
  std::uint8_t requests = 0;
};

TEST_F(RecordService, SaysWithWhatItReads) {
  const auto facts = parser.describeRequest().send().wait(io.waitScope);
  EXPECT_NE(facts.getFacts().getReader().getExpatVersion().size(), 0U);
}

TEST_F(RecordService, ReadsARecordFileOfAGuest) {
  startGuest(R"(<testsuite name="s"><testcase classname="c" name="n"/></testsuite>)");
  auto channel = open();
  const auto response = junit(channel).wait(io.waitScope);
  ASSERT_TRUE(response.getResult().isReport());
  EXPECT_TRUE(response.getResult().getReport().getGreen());
  EXPECT_EQ(cases.cases.size(), 1U);
  auto verdicts = channel.readVerdictsRequest();
  const auto id = idOf(0x77);
  verdicts.setId(kj::arrayPtr(id.bytes.data(), id.bytes.size()));
  verdicts.setPath("/f");
  tests::VerdictList list;
  verdicts.setVerdicts(list.sink());
  // To a reader of lines it is one that never ended.
  const auto torn = verdicts.send().wait(io.waitScope);
  ASSERT_TRUE(torn.getResult().isReport());
  const auto report = torn.getResult().getReport();
  EXPECT_EQ(report.getStatus(), protocols::RecordStatus::EMPTY);
  ASSERT_EQ(report.getFindings().size(), 1U);
  EXPECT_EQ(report.getFindings()[0], protocols::RecordFinding::TORN_TAIL);
}

TEST_F(RecordService, ReadsFourAtOnce) {
  startGuest(std::nullopt);
  auto channel = open();
  std::vector<kj::Promise<void>> running;
  running.reserve(4);
  for (int i = 0; i < 4; ++i)
    running.push_back(junit(channel).ignoreResult().eagerlyEvaluate(nullptr));
  const auto fifth = junit(channel).wait(io.waitScope);
  ASSERT_TRUE(fifth.getResult().isFailure());
  EXPECT_EQ(fifth.getResult().getFailure().getArgument(), protocols::ArgumentError::TOO_MANY);
  EXPECT_EQ(service.operations(), 4U);
  // One that is given up makes room.
  running.pop_back();
  wait(1 * kj::MILLISECONDS);
  EXPECT_EQ(service.operations(), 3U);
  auto another = junit(channel).ignoreResult().eagerlyEvaluate(nullptr);
  wait(1 * kj::MILLISECONDS);
  EXPECT_EQ(service.operations(), 4U);
}

TEST_F(RecordService, RefusesWhatIsOutOfItsBounds) {
  auto channel = open();
  const auto noPath = junit(channel, "").wait(io.waitScope);
  EXPECT_EQ(noPath.getResult().getFailure().getArgument(), protocols::ArgumentError::BAD_TEXT);
  auto noId = channel.readVerdictsRequest();
  noId.setPath("/f");
  EXPECT_EQ(noId.send().wait(io.waitScope).getResult().getFailure().getArgument(),
            protocols::ArgumentError::BAD_ID);
  using Error = protocols::ArgumentError;
  EXPECT_EQ(refusalOf(poll(channel, {})), Error::TOO_MANY);
  EXPECT_EQ(refusalOf(poll(channel, std::vector<std::string>(65, "s"))), Error::TOO_MANY);
  EXPECT_EQ(refusalOf(poll(channel, {"s", "s"})), Error::BAD_TEXT);
  EXPECT_EQ(refusalOf(poll(channel, {""})), Error::BAD_TEXT);
  EXPECT_EQ(refusalOf(poll(channel, {std::string(257, 's')})), Error::BAD_TEXT);
  EXPECT_EQ(refusalOf(poll(channel, {"s"}, 99)), Error::BAD_BUDGET);
  EXPECT_EQ(refusalOf(poll(channel, {"s"}, 3'600'001)), Error::BAD_BUDGET);
  EXPECT_EQ(refusalOf(poll(channel, {"s"}, 100, 99)), Error::BAD_BUDGET);
  EXPECT_EQ(refusalOf(poll(channel, {"s"}, 100, 86'400'001)), Error::BAD_BUDGET);
}

TEST_F(RecordService, AChannelThatWasRefusedRefusesRecordsToo) {
  auto refused = open(2);
  EXPECT_EQ(junit(refused).wait(io.waitScope).getResult().getFailure().getArgument(),
            protocols::ArgumentError::BAD_ADDRESS);
  EXPECT_EQ(refused.readVerdictsRequest()
                .send()
                .wait(io.waitScope)
                .getResult()
                .getFailure()
                .getArgument(),
            protocols::ArgumentError::BAD_ADDRESS);
  EXPECT_EQ(refusalOf(poll(refused, {"s"})), protocols::ArgumentError::BAD_ADDRESS);
}

TEST_F(RecordService, PollsUntilThePollerIsDropped) {
  startGuest(tests::lineOf({.fromMs = 0, .toMs = 10, .final = true}));
  auto channel = open();
  auto poller = kj::heap(poll(channel, {"dns"}));
  const auto response = poller->reportRequest().send().wait(io.waitScope);
  ASSERT_TRUE(response.getResult().isReport());
  const auto report = response.getResult().getReport();
  EXPECT_EQ(report.getCoverage().getAnswer(), protocols::CoverageAnswer::COMPLETE);
  ASSERT_EQ(report.getCoverage().getSources().size(), 1U);
  EXPECT_EQ(tests::bytesOf(report.getCoverage().getSources()[0].getSource()), "dns");
  ASSERT_EQ(report.getPolled().size(), 1U);
  EXPECT_GE(report.getPolled()[0].getAsked(), 1U);
  EXPECT_GT(report.getPolled()[0].getFirstAnswerMs(), 1'600'000'000'000);
  EXPECT_FALSE(report.getPolled()[0].hasLastFailure());
  auto bad = poller->reportRequest();
  bad.initWindow().initBounds().setFromMs(1);
  EXPECT_EQ(bad.send().wait(io.waitScope).getResult().getFailure().getArgument(),
            protocols::ArgumentError::BAD_WINDOW);
  poller = nullptr;
  wait(50 * kj::MILLISECONDS);
  const unsigned before = guest->connections();
  wait(400 * kj::MILLISECONDS);
  EXPECT_EQ(guest->connections(), before);
}

TEST_F(RecordService, TellsWhatASourceCouldNotBeAsked) {
  auto channel = open();
  // Nobody listens there.
  const auto response = poll(channel, {"dns"}).reportRequest().send().wait(io.waitScope);
  const auto report = response.getResult().getReport();
  EXPECT_EQ(report.getCoverage().getAnswer(), protocols::CoverageAnswer::INCOMPLETE);
  ASSERT_TRUE(report.getPolled()[0].hasLastFailure());
  EXPECT_EQ(report.getPolled()[0].getLastFailure().getLoss(), protocols::LossClass::UNREACHABLE);
  EXPECT_EQ(report.getPolled()[0].getAnswered(), 0U);
}

TEST_F(RecordService, ServesEightPollers) {
  startGuest(tests::lineOf({.fromMs = 0, .toMs = 10, .final = true}));
  auto channel = open();
  std::vector<protocols::CoveragePoller::Client> pollers;
  pollers.reserve(8);
  for (int i = 0; i < 8; ++i) {
    pollers.push_back(poll(channel, {"dns"}, 3'600'000));
    EXPECT_TRUE(pollers.back().reportRequest().send().wait(io.waitScope).getResult().isReport());
  }
  EXPECT_EQ(refusalOf(poll(channel, {"dns"})), protocols::ArgumentError::TOO_MANY);
  pollers.pop_back();
  wait(1 * kj::MILLISECONDS);
  auto another = poll(channel, {"dns"}, 3'600'000);
  EXPECT_TRUE(another.reportRequest().send().wait(io.waitScope).getResult().isReport());
}

}  // namespace
}  // namespace cordon::parser
