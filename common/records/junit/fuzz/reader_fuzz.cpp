// An input is a report as a guest would leave it. Held for every input:
// - what is made of it does not depend on how it is fed, nor on the size of the reader's pieces;
// - totals add up, and those of the list are the totals where the list is whole;
// - green is as the rule says; what is not OK is never green and has no list;
// - a failure that is there is not lost: a well-formed report with a `failure` start tag that no
//   namespace, comment or text can hide has no green;
// - caps that are lowered refuse and nothing else.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "common/records/junit/reader.h"

using namespace cordon::records;

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

// nextSize() says how many bytes to feed at once.
template <class NextSize>
JunitReport read(std::string_view text, NextSize&& nextSize, const JunitLimits& limits = {}) {
  JunitReader reader(limits);
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, nextSize());
    reader.feed(std::as_bytes(std::span(piece)));
    text.remove_prefix(piece.size());
  }
  JunitReport report = reader.finish();
  require(reader.peakMemory() <= limits.memory, "the budget holds");
  return report;
}

void checkCuts(std::string_view text, const JunitReport& whole) {
  require(read(text, [] { return std::size_t{1}; }) == whole, "one byte at a time");
  std::uint32_t random = 2463534242u;
  const auto next = [&] {
    random ^= random << 13;
    random ^= random >> 17;
    random ^= random << 5;
    return std::size_t{1} + random % 19;
  };
  require(read(text, next) == whole, "cut anywhere");
  JunitLimits limits;
  limits.pieceBytes = 4 + next();
  require(read(
              text, [&] { return text.size(); }, limits) == whole,
          "pieces of any size");
}

void checkSums(const JunitReport& report) {
  const JunitTotals& totals = report.totals;
  require(totals.cases == totals.passed + totals.failed + totals.errored + totals.skipped +
                              totals.flaky + totals.unknown,
          "totals add up");
  const bool ok = report.status == Status::OK;
  const bool read = ok || report.status == Status::EMPTY;
  require(read == (report.reason == Reason::NONE), "a reason is of what is not read");
  require(read || report.cases.empty(), "no list of what is not read");
  require(report.status != Status::EMPTY || totals.cases == 0, "empty has no case");
  require(!ok || totals.cases > 0, "ok has a case");
  if (report.green) {
    require(ok && totals.passed > 0, "green has passed");
    require(totals.failed + totals.errored + totals.flaky + totals.unknown == 0, "green is clean");
  }
  if (!report.truncated && ok) {
    require(report.cases.size() == totals.cases, "the list is whole");
    const auto passed = std::ranges::count(report.cases, CaseOutcome::PASSED, &JunitCase::outcome);
    require(static_cast<std::uint64_t>(passed) == totals.passed, "and says the same");
  }
  for (const JunitCase& item : report.cases) {
    std::size_t kept = item.className.size() + item.name.size() + item.text.size();
    for (const auto& name : item.suite) kept += name.size();
    require(kept <= JunitLimits{}.caseBytes, "a case keeps no more than it may");
    require(item.attempts > 0, "a case was attempted");
    require(item.truncated || item.text.size() == item.textBytes, "what is not cut is whole");
  }
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

void checkNotLost(std::string_view text, const JunitReport& report) {
  if (report.status != Status::OK || !has(text, "<failure")) return;
  if (has(text, "<!") || has(text, "<?") || has(text, "xmlns") || has(text, "<failure:")) return;
  // `<failures>` is another element.
  if (!has(text, "<failure>") && !has(text, "<failure/>")) return;
  require(!report.green, "a failure is not lost");
}

void checkCaps(std::string_view text, const JunitReport& whole) {
  JunitLimits limits;
  limits.depth = 4;
  limits.attributes = 3;
  limits.names = 12;
  limits.keys = 5;
  limits.elements = 40;
  limits.tokenBytes = 64;
  limits.bytes = 4096;
  limits.caseBytes = 32;
  limits.listedCases = 3;
  limits.listedBytes = 64;
  limits.memory = 200 << 10;
  const auto all = [&] { return text.size(); };
  const JunitReport small = read(text, all, limits);
  require(small == read(
                       text, [] { return std::size_t{1}; }, limits),
          "low caps, byte by byte");
  if (small.status == Status::OK || small.status == Status::EMPTY) {
    require(small.status == whole.status && small.totals == whole.totals &&
                small.green == whole.green && small.findings == whole.findings,
            "what low caps let through is the same");
  } else if (small.status == Status::UNPARSABLE) {
    require(whole.status != Status::OK && whole.status != Status::EMPTY, "a cap is no fault");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const JunitReport whole = read(text, [&] { return text.size(); });
  checkCuts(text, whole);
  checkSums(whole);
  checkNotLost(text, whole);
  checkCaps(text, whole);
  return 0;
}
