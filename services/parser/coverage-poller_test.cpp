// Sources asked in virtual time, with a time of day that the test sets.
#include "services/parser/coverage-poller.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "services/parser/testing/watermarks.h"
#include "tests/support/virtual-client.h"

namespace cordon::parser {
namespace {

using records::Coverage;
using records::Finding;
using records::Window;
using tests::Heard;
using tests::lineOf;
using tests::Saying;
using tests::stretch;
using tests::VirtualClient;

// What the wall says when a test begins.
constexpr std::int64_t BEGIN_MS = 1'000'000;

// The time of day goes with the virtual time, but for what a test sets it forward or back.
class WallClock final : public kj::Clock {
 public:
  explicit WallClock(kj::Timer& clock) : timer(clock) {}
  kj::Date now() const override {
    return kj::UNIX_EPOCH + (BEGIN_MS + stepMs) * kj::MILLISECONDS +
           (timer.now() - kj::origin<kj::TimePoint>());
  }
  std::int64_t stepMs = 0;

 private:
  kj::Timer& timer;
};

// A guest with files, and a poller of some of them.
class Polling {
 public:
  Polling() : guest(tests::honestBut([this](const Heard& heard) { return say(heard); })) {}

  void begin(CoveragePlan plan) {
    poller = std::make_unique<CoveragePoller>(guest.client, guest.world.timer(), wall, guest.ids,
                                              std::move(plan));
  }
  void begin() { begin(planOf({"dns"})); }
  static CoveragePlan planOf(std::initializer_list<const char*> names) {
    CoveragePlan plan{
        .sources = {}, .interval = 1 * kj::SECONDS, .silence = 5 * kj::SECONDS, .budget = {}};
    for (const char* name : names)
      plan.sources.push_back({.name = name, .path = std::string("/") + name});
    return plan;
  }
  CoverageAnswer report(std::optional<Window> asked = std::nullopt) {
    return guest.world.run(poller->report(asked));
  }
  // So far.
  [[nodiscard]] unsigned questions() const { return guest.guest.count("read_file"); }
  void pass(kj::Duration time) { guest.world.pass(time); }

  std::map<std::string, std::string> files;
  std::map<std::string, std::string> errors;  // errno names in place of files
  std::optional<std::size_t> limit;           // over it a file is truncated
  kj::Duration delay = 0 * kj::SECONDS;       // of each answer
  VirtualClient guest;
  WallClock wall{guest.world.timer()};
  std::unique_ptr<CoveragePoller> poller;

 private:
  Saying say(const Heard& heard) {
    const auto* read = std::get_if<channel::ReadFile>(&heard.request.body);
    const std::string path = read->path;
    if (const auto error = errors.find(path); error != errors.end())
      return Saying::bytes(tests::error(heard.request.id, error->second));
    if (!files.contains(path)) return Saying::bytes(tests::error(heard.request.id, "ENOENT"));
    const std::string& content = files[path];
    if (limit && content.size() > *limit) {
      return Saying::bytes(tests::file(heard.request.id, content.substr(0, *limit), true));
    }
    return {.parts = {{.bytes = tests::file(heard.request.id, content), .after = delay}}};
  }
};

TEST(CoveragePoller, AsksAtOnceAndAtTheIntervalAfterEachRound) {
  Polling polling;
  polling.files["/dns"] = "";
  polling.begin();
  polling.guest.world.settle();
  EXPECT_EQ(polling.questions(), 1U);
  polling.pass(999 * kj::MILLISECONDS);
  EXPECT_EQ(polling.questions(), 1U);
  polling.pass(1 * kj::MILLISECONDS);
  EXPECT_EQ(polling.questions(), 2U);
  // Counted from the end of a round.
  polling.delay = 3 * kj::SECONDS;
  polling.pass(1 * kj::SECONDS);
  EXPECT_EQ(polling.questions(), 3U);
  polling.pass(3999 * kj::MILLISECONDS);
  EXPECT_EQ(polling.questions(), 3U);
  polling.pass(1 * kj::MILLISECONDS);
  EXPECT_EQ(polling.questions(), 4U);
}

TEST(CoveragePoller, CoversWhatItsSourceAppends) {
  Polling polling;
  std::string& file = polling.files["/dns"];
  polling.begin();
  for (int seq = 1; seq <= 10; ++seq) {
    polling.pass(1 * kj::SECONDS);
    file += lineOf(stretch(seq, 1000, BEGIN_MS));
  }
  const auto answer = polling.report();
  EXPECT_EQ(answer.coverage.status, records::Status::OK);
  EXPECT_EQ(answer.coverage.answer, Coverage::COMPLETE);
  EXPECT_TRUE(answer.coverage.findings.empty());
  ASSERT_EQ(answer.coverage.sources.size(), 1U);
  EXPECT_EQ(answer.coverage.sources[0].source, "dns");
  ASSERT_EQ(answer.polled.size(), 1U);
  EXPECT_EQ(answer.polled[0].answered, answer.polled[0].asked);
  EXPECT_EQ(answer.polled[0].firstAnswerMs, BEGIN_MS);
  EXPECT_EQ(answer.polled[0].lastNewsMs, BEGIN_MS + 10'000);
  EXPECT_FALSE(answer.polled[0].lastFailure);
  EXPECT_FALSE(answer.polled[0].silent);
  EXPECT_EQ(polling.report(Window{BEGIN_MS, BEGIN_MS + 10'000}).coverage.answer,
            Coverage::COMPLETE);
  const auto beyond = polling.report(Window{BEGIN_MS, BEGIN_MS + 10'001});
  EXPECT_EQ(beyond.coverage.answer, Coverage::INCOMPLETE);
  ASSERT_EQ(beyond.coverage.sources[0].gaps.size(), 1U);
  EXPECT_EQ(beyond.coverage.sources[0].gaps[0].why, Finding::BEYOND_RECORDS);
}

TEST(CoveragePoller, AReportAsksOnceMore) {
  Polling polling;
  polling.files["/dns"] = lineOf(stretch(1, 1000, BEGIN_MS - 1000));
  polling.begin();
  polling.guest.world.settle();
  polling.files["/dns"] += lineOf(stretch(2, 1000, BEGIN_MS - 1000));
  const auto elapsed = polling.guest.world.elapsed();
  EXPECT_EQ(polling.report(Window{BEGIN_MS - 1000, BEGIN_MS + 1000}).coverage.answer,
            Coverage::COMPLETE);
  EXPECT_EQ(polling.questions(), 2U);
  EXPECT_EQ(polling.guest.world.elapsed(), elapsed);
}

// One that is under way has asked already: its answer may be older than the report's question.
TEST(CoveragePoller, AReportWaitsForARoundThatBeginsAfterIt) {
  Polling polling;
  polling.files["/dns"] = "";
  polling.delay = 100 * kj::MILLISECONDS;
  polling.begin();
  polling.guest.world.settle();
  auto first = polling.poller->report(std::nullopt);
  auto second = polling.poller->report(std::nullopt);
  polling.guest.world.run(kj::mv(first));
  polling.guest.world.run(kj::mv(second));
  EXPECT_EQ(polling.questions(), 2U);
}

TEST(CoveragePoller, ALineThatIsNotWholeYetIsTakenWhenItIs) {
  Polling polling;
  const std::string line = lineOf(stretch(1, 1000, BEGIN_MS - 1000));
  polling.files["/dns"] = line.substr(0, 30);
  polling.begin();
  const auto torn = polling.report();
  EXPECT_EQ(torn.coverage.status, records::Status::EMPTY);
  EXPECT_EQ(torn.coverage.answer, Coverage::INCOMPLETE);
  polling.files["/dns"] = line;
  EXPECT_EQ(polling.report().coverage.answer, Coverage::COMPLETE);
}

TEST(CoveragePoller, AFileThatWasRewrittenIsAContradiction) {
  const std::string first = lineOf(stretch(1, 1000, BEGIN_MS - 1000));
  const std::string other = lineOf({.fromMs = BEGIN_MS - 1000, .toMs = BEGIN_MS, .dropped = 1});
  for (const std::string& now : {std::string(), first.substr(0, first.size() - 1), other,
                                 other + lineOf(stretch(2, 1000, BEGIN_MS - 1000))}) {
    Polling polling;
    polling.files["/dns"] = first;
    polling.begin();
    EXPECT_EQ(polling.report().coverage.answer, Coverage::COMPLETE);
    polling.files["/dns"] = now;
    const auto answer = polling.report();
    EXPECT_EQ(answer.coverage.answer, Coverage::CONTRADICTORY) << now;
    EXPECT_EQ(answer.coverage.sources[0].answer, Coverage::CONTRADICTORY);
    EXPECT_TRUE(answer.coverage.findings.has(Finding::REWRITTEN));
    // It stays so, whatever the file says afterwards, and is not asked again.
    polling.files["/dns"] = first;
    const auto later = polling.report();
    EXPECT_EQ(later.coverage.answer, Coverage::CONTRADICTORY);
    EXPECT_EQ(later.polled[0].asked, answer.polled[0].asked);
  }
}

TEST(CoveragePoller, AFileThatIsGoneIsRewrittenToo) {
  Polling polling;
  polling.files["/dns"] = lineOf(stretch(1, 1000, BEGIN_MS - 1000));
  polling.begin();
  EXPECT_EQ(polling.report().coverage.answer, Coverage::COMPLETE);
  polling.files.clear();
  const auto answer = polling.report();
  EXPECT_EQ(answer.coverage.answer, Coverage::CONTRADICTORY);
  EXPECT_TRUE(answer.coverage.findings.has(Finding::REWRITTEN));
}

TEST(CoveragePoller, ASourceThatCouldNotBeAskedIsToldOf) {
  Polling polling;
  polling.files["/dns"] = lineOf(stretch(1, 1000, BEGIN_MS - 1000));
  polling.errors["/edr"] = "EACCES";
  polling.begin(Polling::planOf({"dns", "edr"}));
  const auto answer = polling.report(Window{BEGIN_MS - 1000, BEGIN_MS});
  EXPECT_EQ(answer.coverage.status, records::Status::OK);
  EXPECT_EQ(answer.coverage.answer, Coverage::INCOMPLETE);
  ASSERT_EQ(answer.coverage.sources.size(), 2U);
  EXPECT_EQ(answer.coverage.sources[0].answer, Coverage::COMPLETE);
  EXPECT_EQ(answer.coverage.sources[1].source, "edr");
  EXPECT_EQ(answer.coverage.sources[1].answer, Coverage::INCOMPLETE);
  ASSERT_EQ(answer.coverage.sources[1].gaps.size(), 1U);
  EXPECT_EQ(answer.coverage.sources[1].gaps[0].window, (Window{BEGIN_MS - 1000, BEGIN_MS}));
  EXPECT_FALSE(answer.polled[0].lastFailure);
  ASSERT_TRUE(answer.polled[1].lastFailure);
  EXPECT_EQ(describe(*answer.polled[1].lastFailure), "guest EACCES");
  EXPECT_EQ(answer.polled[1].asked, 2U);
  EXPECT_EQ(answer.polled[1].answered, 0U);
  EXPECT_EQ(answer.polled[1].firstAnswerMs, 0);
  // A file that comes later is as good as any.
  polling.errors.clear();
  polling.files["/edr"] = lineOf({.source = "edr", .fromMs = BEGIN_MS - 1000, .toMs = BEGIN_MS});
  const auto later = polling.report(Window{BEGIN_MS - 1000, BEGIN_MS});
  EXPECT_EQ(later.coverage.answer, Coverage::COMPLETE);
  EXPECT_EQ(describe(*later.polled[1].lastFailure), "guest EACCES");
}

TEST(CoveragePoller, AFileOfAnotherSourceIsVoid) {
  Polling polling;
  polling.files["/dns"] = lineOf({.source = "edr", .fromMs = BEGIN_MS - 1000, .toMs = BEGIN_MS});
  polling.begin();
  const auto answer = polling.report();
  EXPECT_EQ(answer.coverage.status, records::Status::REFUSED);
  EXPECT_EQ(answer.coverage.reason, records::Reason::WRONG_VALUE);
  EXPECT_EQ(answer.coverage.line, 1U);
  EXPECT_EQ(answer.coverage.answer, Coverage::CONTRADICTORY);
  ASSERT_EQ(answer.coverage.sources.size(), 1U);
  EXPECT_EQ(answer.coverage.sources[0].source, "dns");
}

TEST(CoveragePoller, ABadLineVoidsItsSourceAlone) {
  Polling polling;
  polling.files["/dns"] = lineOf(stretch(1, 1000, BEGIN_MS - 1000));
  polling.files["/edr"] = lineOf({.source = "edr", .fromMs = BEGIN_MS - 1000, .toMs = BEGIN_MS});
  polling.begin(Polling::planOf({"dns", "edr"}));
  EXPECT_EQ(polling.report().coverage.answer, Coverage::COMPLETE);
  polling.files["/edr"] += "{]\n";
  const auto answer = polling.report();
  EXPECT_EQ(answer.coverage.status, records::Status::UNPARSABLE);
  EXPECT_EQ(answer.coverage.reason, records::Reason::NOT_JSON);
  EXPECT_EQ(answer.coverage.line, 2U);
  EXPECT_EQ(answer.coverage.answer, Coverage::CONTRADICTORY);
  EXPECT_EQ(answer.coverage.sources[0].answer, Coverage::COMPLETE);
  EXPECT_EQ(answer.coverage.sources[1].answer, Coverage::CONTRADICTORY);
}

TEST(CoveragePoller, AFileThatIsTooLongIsVoid) {
  Polling polling;
  polling.files["/dns"] = lineOf(stretch(1, 1000, BEGIN_MS - 1000));
  polling.limit = 20;
  polling.begin();
  const auto answer = polling.report();
  EXPECT_EQ(answer.coverage.status, records::Status::REFUSED);
  EXPECT_EQ(answer.coverage.reason, records::Reason::TOO_MANY_BYTES);
  EXPECT_EQ(answer.coverage.answer, Coverage::CONTRADICTORY);
  const auto& read = std::get<channel::ReadFile>(polling.guest.guest.heard()[0].request.body);
  EXPECT_EQ(read.maxBytes, 16 << 20);
}

TEST(CoveragePoller, ALongFileIsTakenInPiecesThatAreAskedForAtOnce) {
  Polling polling;
  std::string& file = polling.files["/dns"];
  std::int64_t records = 0;
  while (file.size() < 2 * MAX_NEWS + 1)
    file += lineOf(stretch(++records, 10, BEGIN_MS - 1'000'000));
  polling.begin();
  polling.pass(1 * kj::MILLISECONDS);
  EXPECT_EQ(polling.questions(), 3U);
  const auto answer = polling.report();
  EXPECT_EQ(answer.coverage.answer, Coverage::COMPLETE);
  EXPECT_EQ(polling.questions(), 4U);
}

TEST(CoveragePoller, SilenceSpoilsTheWindowInWhichItWas) {
  Polling polling;
  std::string& file = polling.files["/dns"];
  polling.begin();
  polling.pass(1 * kj::SECONDS);
  file += lineOf(stretch(1, 1000, BEGIN_MS));
  polling.pass(7 * kj::SECONDS);  // found after 1 s, and then nothing for 6 s
  file += lineOf({.seq = 2, .fromMs = BEGIN_MS + 1000, .toMs = BEGIN_MS + 8000});
  const auto whole = polling.report();
  EXPECT_TRUE(whole.coverage.findings.has(Finding::SILENT));
  EXPECT_EQ(whole.coverage.answer, Coverage::INCOMPLETE);
  EXPECT_EQ(whole.coverage.sources[0].answer, Coverage::INCOMPLETE);
  EXPECT_TRUE(whole.polled[0].silent);
  EXPECT_EQ(whole.polled[0].longestSilenceMs, 6000U);
  const auto in = polling.report(Window{BEGIN_MS + 7000, BEGIN_MS + 8000});
  EXPECT_EQ(in.coverage.answer, Coverage::INCOMPLETE);
  EXPECT_TRUE(in.coverage.findings.has(Finding::SILENT));
  const auto before = polling.report(Window{BEGIN_MS, BEGIN_MS + 1000});
  EXPECT_EQ(before.coverage.answer, Coverage::COMPLETE);
  EXPECT_TRUE(before.polled[0].silent);
}

TEST(CoveragePoller, SilenceThatLastsIsSeenBeforeItEnds) {
  Polling polling;
  polling.files["/dns"] = lineOf(stretch(1, 1000, BEGIN_MS - 1000));
  polling.begin();
  polling.pass(5 * kj::SECONDS);
  EXPECT_EQ(polling.report().coverage.answer, Coverage::COMPLETE);
  polling.pass(1 * kj::MILLISECONDS);
  const auto answer = polling.report();
  EXPECT_EQ(answer.coverage.answer, Coverage::INCOMPLETE);
  EXPECT_TRUE(answer.coverage.findings.has(Finding::SILENT));
  EXPECT_EQ(answer.polled[0].longestSilenceMs, 5001U);
  EXPECT_EQ(polling.report(Window{BEGIN_MS - 1000, BEGIN_MS}).coverage.answer, Coverage::COMPLETE);
}

TEST(CoveragePoller, ASourceThatNeverSpokeIsSilent) {
  Polling polling;
  polling.files["/dns"] = "";
  polling.begin();
  polling.pass(6 * kj::SECONDS);
  const auto answer = polling.report();
  EXPECT_TRUE(answer.coverage.findings.has(Finding::SILENT));
  EXPECT_EQ(answer.coverage.answer, Coverage::INCOMPLETE);
  EXPECT_EQ(answer.polled[0].lastNewsMs, 0);
  EXPECT_TRUE(answer.polled[0].silent);
}

TEST(CoveragePoller, AfterItsLastWordASourceOwesNothing) {
  Polling polling;
  polling.files["/dns"] = lineOf({.fromMs = BEGIN_MS - 1000, .toMs = BEGIN_MS, .final = true});
  polling.begin();
  polling.pass(100 * kj::SECONDS);
  const auto answer = polling.report();
  EXPECT_EQ(answer.coverage.answer, Coverage::COMPLETE);
  EXPECT_FALSE(answer.polled[0].silent);
}

// A source that vouches today for tomorrow says nothing.
TEST(CoveragePoller, ARecordAheadOfTheHostSpoilsItsWindow) {
  Polling polling;
  polling.files["/dns"] = lineOf({.fromMs = BEGIN_MS - 1000, .toMs = BEGIN_MS + 5000});
  polling.begin();
  EXPECT_EQ(polling.report().coverage.answer, Coverage::COMPLETE);
  polling.files["/dns"] += lineOf({.seq = 2, .fromMs = BEGIN_MS + 5000, .toMs = BEGIN_MS + 5001});
  const auto answer = polling.report();
  EXPECT_EQ(answer.coverage.answer, Coverage::INCOMPLETE);
  EXPECT_TRUE(answer.coverage.findings.has(Finding::AHEAD_OF_HOST));
  EXPECT_EQ(polling.report(Window{BEGIN_MS - 1000, BEGIN_MS + 5000}).coverage.answer,
            Coverage::COMPLETE);
  // What was said too early is not made true by waiting.
  polling.pass(1 * kj::SECONDS);
  EXPECT_EQ(polling.report(Window{BEGIN_MS, BEGIN_MS + 5001}).coverage.answer,
            Coverage::INCOMPLETE);
}

TEST(CoveragePoller, ATimeOfDayThatStepsIsNoSilence) {
  Polling polling;
  std::string& file = polling.files["/dns"];
  file = lineOf(stretch(1, 1000, BEGIN_MS - 1000));
  polling.begin();
  polling.guest.world.settle();
  polling.wall.stepMs = 3'600'000;
  polling.pass(1 * kj::SECONDS);
  file += lineOf(stretch(2, 1000, BEGIN_MS - 1000));
  const auto answer = polling.report();
  EXPECT_FALSE(answer.polled[0].silent);
  EXPECT_EQ(answer.polled[0].longestSilenceMs, 1000U);
  EXPECT_EQ(answer.polled[0].lastNewsMs, BEGIN_MS + 3'601'000);
}

TEST(CoveragePoller, DroppingItEndsItsQuestions) {
  Polling polling;
  polling.files["/dns"] = "";
  polling.delay = 100 * kj::SECONDS;
  polling.begin(Polling::planOf({"dns"}));
  polling.pass(1 * kj::SECONDS);
  EXPECT_EQ(polling.guest.guest.open(), 1U);
  polling.poller = nullptr;
  polling.guest.world.settle();
  EXPECT_EQ(polling.guest.guest.open(), 0U);
  polling.pass(1000 * kj::SECONDS);
  EXPECT_EQ(polling.questions(), 1U);
}

TEST(CoveragePoller, AsksFourAtATime) {
  Polling polling;
  for (const char* path : {"/a", "/b", "/c", "/d", "/e", "/f"}) polling.files[path] = "";
  polling.delay = 1 * kj::SECONDS;
  polling.begin(Polling::planOf({"a", "b", "c", "d", "e", "f"}));
  polling.pass(500 * kj::MILLISECONDS);
  EXPECT_EQ(polling.questions(), 4U);
  polling.pass(1 * kj::SECONDS);
  EXPECT_EQ(polling.questions(), 6U);
}

TEST(CoveragePoller, UnevenRecordsAreBoundedOverAllSources) {
  std::size_t uneven = MAX_UNEVEN_RECORDS - 2;
  const Moment begin{.monotonic = kj::origin<kj::TimePoint>(), .wallMs = BEGIN_MS};
  PolledSource source("dns", 1 * kj::HOURS, uneven, begin);
  const auto feed = [&](const std::string& content) {
    PolledSource::Answer answer(source);
    tests::VirtualWorld world;
    world.run(answer.write(kj::StringPtr(content.c_str(), content.size()).asBytes()));
    source.conclude(answer, Content{.size = content.size()}, begin);
    return source.judge(std::nullopt, begin);
  };
  // The first record, and one with a gap before it, count; one that just goes on does not.
  std::string content = lineOf({.seq = 1, .fromMs = 0, .toMs = 10});
  content += lineOf({.seq = 2, .fromMs = 10, .toMs = 20});
  content += lineOf({.seq = 3, .fromMs = 30, .toMs = 40});
  EXPECT_EQ(feed(content).status, records::Status::OK);
  content += lineOf({.seq = 4, .fromMs = 40, .toMs = 50});
  EXPECT_EQ(feed(content).status, records::Status::OK);
  content += lineOf({.seq = 5, .fromMs = 50, .toMs = 60, .dropped = 1});
  const auto report = feed(content);
  EXPECT_EQ(report.status, records::Status::REFUSED);
  EXPECT_EQ(report.reason, records::Reason::TOO_MANY_LINES);
  EXPECT_EQ(report.answer, Coverage::CONTRADICTORY);
}

TEST(Spans, SayTooMuchRatherThanTooLittle) {
  Spans spans;
  EXPECT_FALSE(spans.intersect(std::nullopt));
  EXPECT_FALSE(spans.intersect(Window{0, 100}));
  for (std::int64_t i = 0; i < 5000; ++i) spans.add({i * 10, i * 10 + 1});
  EXPECT_TRUE(spans.intersect(std::nullopt));
  EXPECT_TRUE(spans.intersect(Window{10, 11}));
  EXPECT_FALSE(spans.intersect(Window{11, 20}));
  EXPECT_FALSE(spans.intersect(Window{-5, 0}));
  EXPECT_TRUE(spans.intersect(Window{49'990, 49'991}));
  // Beyond the bound the last one has grown.
  EXPECT_TRUE(spans.intersect(Window{49'981, 49'990}));
  Spans point;
  point.add({5, 5});
  EXPECT_TRUE(point.intersect(Window{5, 6}));
  EXPECT_FALSE(point.intersect(Window{4, 5}));
}

}  // namespace
}  // namespace cordon::parser
