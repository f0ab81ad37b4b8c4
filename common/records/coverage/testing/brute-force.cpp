#include "common/records/coverage/testing/brute-force.h"

#include <algorithm>
#include <cstddef>

namespace cordon::records::testing {
namespace {

using Records = std::span<const Watermark>;

bool holds(const Window& window, std::int64_t ms) {
  return window.fromMs <= ms && ms < window.toMs;
}

bool sharesTime(const Window& a, const Window& b) {
  for (std::int64_t ms = a.fromMs; ms < a.toMs; ++ms) {
    if (holds(b, ms)) return true;
  }
  return false;
}

bool counts(const Watermark& record, const std::optional<Window>& asked) {
  if (!asked) return true;
  const Window& window = record.window;
  const bool touches = window.fromMs == window.toMs && asked->fromMs <= window.fromMs &&
                       window.fromMs <= asked->toMs;
  return touches || sharesTime(window, *asked);
}

std::int64_t highestEpoch(Records earlier) {
  return std::ranges::max_element(earlier, {}, &Watermark::epoch)->epoch;
}

// What record `at` contradicts of those before it.
void addContradictions(Records records, std::size_t at, Findings& findings) {
  const Watermark& record = records[at];
  const Records earlier = records.first(at);
  if (record.window.fromMs > record.window.toMs) findings.add(Finding::INVERTED_WINDOW);
  if (record.window.fromMs == record.window.toMs && record.events > 0)
    findings.add(Finding::EVENTS_WITHOUT_WINDOW);
  bool isFirstOfEpoch = true;
  std::int64_t highest = 0;
  for (const Watermark& other : earlier) {
    if (other.final) findings.add(Finding::AFTER_FINAL);
    if (sharesTime(other.window, record.window)) findings.add(Finding::OVERLAPPING_WINDOWS);
    if (other.epoch != record.epoch) continue;
    // Of an epoch that was left, later records are EPOCH_BACKWARD and nothing else.
    if (isFirstOfEpoch && other.aliveSinceMs != record.aliveSinceMs &&
        record.epoch >= highestEpoch(earlier))
      findings.add(Finding::START_MOVED);
    isFirstOfEpoch = false;
    highest = std::max(highest, other.seq);
  }
  if (!earlier.empty() && record.epoch < highestEpoch(earlier)) {
    findings.add(Finding::EPOCH_BACKWARD);
  } else if (record.seq == highest) {
    findings.add(Finding::SEQUENCE_REPEATED);
  } else if (record.seq < highest) {
    findings.add(Finding::SEQUENCE_BACKWARD);
  }
}

// What record `at` leaves incomplete.
Findings faultsOf(Records records, std::size_t at) {
  const Watermark& record = records[at];
  const Records earlier = records.first(at);
  Findings findings;
  const bool isBehind = !earlier.empty() && record.epoch < highestEpoch(earlier);
  std::int64_t highest = 0;
  bool overlaps = false;
  bool isBeforeAnother = false;
  for (const Watermark& other : earlier) {
    if (other.epoch == record.epoch) highest = std::max(highest, other.seq);
    overlaps = overlaps || sharesTime(other.window, record.window);
    isBeforeAnother = isBeforeAnother || (other.window.fromMs <= other.window.toMs &&
                                          record.window.fromMs < other.window.toMs);
  }
  if (!isBehind && record.seq > highest + 1) findings.add(Finding::MISSING_SEQUENCE);
  if (!earlier.empty() && record.epoch > highestEpoch(earlier)) findings.add(Finding::RESTARTED);
  if (record.dropped > 0) findings.add(Finding::DROPPED_EVENTS);
  if (record.aliveSinceMs > record.window.fromMs) findings.add(Finding::STARTED_LATE);
  if (isBeforeAnother && !overlaps && record.window.fromMs <= record.window.toMs)
    findings.add(Finding::CLOCK_STEP);
  if (at + 1 == records.size() && record.backlog > 0) findings.add(Finding::BACKLOG_LEFT);
  return findings;
}

// Of all windows that are not inverted.
std::optional<Window> spanOf(Records records) {
  std::optional<Window> span;
  for (const Watermark& record : records) {
    if (record.window.fromMs > record.window.toMs) continue;
    if (!span) span = record.window;
    span->fromMs = std::min(span->fromMs, record.window.fromMs);
    span->toMs = std::max(span->toMs, record.window.toMs);
  }
  return span;
}

// Why millisecond `ms` was not observed, if it was not.
std::optional<Finding> gapAt(Records records, std::int64_t ms) {
  bool isCovered = false;
  bool isLate = false;
  for (const Watermark& record : records) {
    isCovered = isCovered || holds(record.window, ms);
    isLate = isLate || (holds(record.window, ms) && ms < record.aliveSinceMs);
  }
  if (isLate) return Finding::STARTED_LATE;
  if (isCovered) return std::nullopt;
  const auto span = spanOf(records);
  return span && holds(*span, ms) ? Finding::HOLE : Finding::BEYOND_RECORDS;
}

}  // namespace

BruteForceAnswer judgeByMillisecond(Records records, const std::optional<Window>& asked) {
  BruteForceAnswer result;
  Findings contradictions;
  for (std::size_t at = 0; at < records.size(); ++at) {
    addContradictions(records, at, contradictions);
    if (!counts(records[at], asked)) continue;
    const Findings faults = faultsOf(records, at);
    result.findings.add(faults);
    result.source.dropped += static_cast<std::uint64_t>(records[at].dropped);
    result.source.restarts += faults.has(Finding::RESTARTED) ? 1 : 0;
  }
  const Window question = asked.value_or(spanOf(records).value_or(Window{}));
  std::optional<Finding> last;
  for (std::int64_t ms = question.fromMs; ms < question.toMs; ++ms) {
    const auto why = gapAt(records, ms);
    if (why && why != last) result.source.gaps.push_back({{ms, ms}, *why});
    if (why) {
      result.findings.add(*why);
      result.source.gaps.back().window.toMs = ms + 1;
    }
    last = why;
  }
  if (!result.findings.empty()) result.answer = Coverage::INCOMPLETE;
  if (!contradictions.empty()) result.answer = Coverage::CONTRADICTORY;
  result.findings.add(contradictions);
  result.source.answer = result.answer;
  return result;
}

}  // namespace cordon::records::testing
