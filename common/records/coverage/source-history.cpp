#include "common/records/coverage/source-history.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace cordon::records {
namespace {

// An empty window holds no time, but what its record says happened next to it. An inverted one is
// nowhere.
bool intersects(const Window& window, const std::optional<Window>& asked) {
  if (!asked) return true;
  if (window.fromMs == window.toMs)
    return asked->fromMs <= window.fromMs && window.toMs <= asked->toMs;
  return window.fromMs < window.toMs && window.fromMs < asked->toMs && asked->fromMs < window.toMs;
}

std::uint64_t addUpTo(std::uint64_t sum, std::int64_t more) {
  constexpr auto MOST = std::numeric_limits<std::uint64_t>::max();
  const auto addend = static_cast<std::uint64_t>(more);
  return sum > MOST - addend ? MOST : sum + addend;
}

}  // namespace

void SourceHistory::add(const Watermark& watermark) {
  Spoiler spoiler{.window = watermark.window,
                  .lateToMs = std::max(watermark.window.fromMs, watermark.aliveSinceMs),
                  .dropped = watermark.dropped};
  if (final) contradictions.add(Finding::AFTER_FINAL);
  addSequence(watermark, spoiler);
  addWindow(watermark, spoiler);
  final = final || watermark.final;
  lastWindow = watermark.window;
  lastBacklog = watermark.backlog;
  if (spoiler.restarted || spoiler.missesSequence || spoiler.clockStep || spoiler.dropped > 0 ||
      spoiler.lateToMs > spoiler.window.fromMs) {
    spoilers.push_back(spoiler);
  }
}

void SourceHistory::addSequence(const Watermark& watermark, Spoiler& spoiler) {
  const bool isFirst = !std::exchange(any, true);
  if (!isFirst && watermark.epoch < epoch) {
    contradictions.add(Finding::EPOCH_BACKWARD);
    return;
  }
  spoiler.restarted = !isFirst && watermark.epoch > epoch;
  if (isFirst || spoiler.restarted) {
    epoch = watermark.epoch;
    aliveSinceMs = watermark.aliveSinceMs;
    seq = 0;
  }
  if (watermark.aliveSinceMs != aliveSinceMs) contradictions.add(Finding::START_MOVED);
  if (watermark.seq <= seq) {
    contradictions.add(watermark.seq == seq ? Finding::SEQUENCE_REPEATED
                                            : Finding::SEQUENCE_BACKWARD);
    return;
  }
  spoiler.missesSequence = watermark.seq > seq + 1;
  seq = watermark.seq;
}

void SourceHistory::addWindow(const Watermark& watermark, Spoiler& spoiler) {
  const Window& window = watermark.window;
  if (window.fromMs > window.toMs) {
    contradictions.add(Finding::INVERTED_WINDOW);
    return;
  }
  if (window.fromMs == window.toMs && watermark.events > 0)
    contradictions.add(Finding::EVENTS_WITHOUT_WINDOW);
  if (!cover(window)) {
    contradictions.add(Finding::OVERLAPPING_WINDOWS);
  } else {
    spoiler.clockStep = span && window.fromMs < span->toMs;
  }
  if (!span) span = window;
  span->fromMs = std::min(span->fromMs, window.fromMs);
  span->toMs = std::max(span->toMs, window.toMs);
}

// False where some of it was covered already.
bool SourceHistory::cover(const Window& window) {
  if (window.fromMs == window.toMs) return true;
  std::int64_t from = window.fromMs;
  std::int64_t to = window.toMs;
  auto next = covered.upper_bound(from);
  bool isNew = next == covered.end() || next->first >= to;
  if (next != covered.begin()) {
    const auto before = std::prev(next);
    isNew = isNew && before->second <= from;
    if (before->second >= from) {
      from = before->first;
      to = std::max(to, before->second);
      next = covered.erase(before);
    }
  }
  while (next != covered.end() && next->first <= to) {
    to = std::max(to, next->second);
    next = covered.erase(next);
  }
  covered.emplace_hint(next, from, to);
  return isNew;
}

SourceHistory::Judgement SourceHistory::judge(const std::optional<Window>& asked, bool tornTail,
                                              std::size_t maxGaps) const {
  Judgement judgement;
  std::vector<std::uint32_t> late;
  judgeSpoilers(asked, judgement, late);
  if (const auto question = asked ? asked : span) findGaps(*question, late, maxGaps, judgement);
  if (lastBacklog > 0 && intersects(lastWindow, asked))
    judgement.findings.add(Finding::BACKLOG_LEFT);
  if (tornTail && !final) judgement.findings.add(Finding::TORN_TAIL);
  if (!judgement.findings.empty()) judgement.answer = Coverage::INCOMPLETE;
  if (!contradictions.empty()) {
    judgement.answer = Coverage::CONTRADICTORY;
    judgement.findings.add(contradictions);
  }
  return judgement;
}

void SourceHistory::judgeSpoilers(const std::optional<Window>& asked, Judgement& judgement,
                                  std::vector<std::uint32_t>& late) const {
  std::uint32_t index = 0;
  for (const Spoiler& spoiler : spoilers) {
    const std::uint32_t at = index++;
    if (!intersects(spoiler.window, asked)) continue;
    const auto note = [&](bool is, Finding finding) {
      if (is) judgement.findings.add(finding);
    };
    const bool isLate = spoiler.lateToMs > spoiler.window.fromMs;
    note(spoiler.restarted, Finding::RESTARTED);
    note(spoiler.missesSequence, Finding::MISSING_SEQUENCE);
    note(spoiler.clockStep, Finding::CLOCK_STEP);
    note(spoiler.dropped > 0, Finding::DROPPED_EVENTS);
    note(isLate, Finding::STARTED_LATE);
    judgement.dropped = addUpTo(judgement.dropped, spoiler.dropped);
    judgement.restarts += spoiler.restarted ? 1 : 0;
    if (isLate) late.push_back(at);
  }
  const auto startsEarlier = [this](std::uint32_t a, std::uint32_t b) {
    return spoilers[a].window.fromMs < spoilers[b].window.fromMs;
  };
  // They are in order already unless the clock stepped.
  std::ranges::sort(late, startsEarlier);
}

// Takes gaps in the order of time, clips them to the question and joins neighbours.
class SourceHistory::GapWalk {
 public:
  GapWalk(const Window& asked, std::size_t maxGaps, Judgement& result)
      : question(asked), limit(maxGaps), judgement(result) {}

  void take(std::int64_t from, std::int64_t to, Finding why) {
    from = std::max(from, question.fromMs);
    to = std::min(to, question.toMs);
    if (from >= to) return;
    judgement.findings.add(why);
    if (judgement.truncated) return;
    auto& gaps = judgement.gaps;
    if (!gaps.empty() && gaps.back().why == why && gaps.back().window.toMs >= from) {
      gaps.back().window.toMs = std::max(gaps.back().window.toMs, to);
    } else if (gaps.size() < limit) {
      gaps.push_back({{from, to}, why});
    } else {
      judgement.truncated = true;
    }
  }

 private:
  Window question;
  std::size_t limit;
  Judgement& judgement;
};

void SourceHistory::findGaps(const Window& question, const std::vector<std::uint32_t>& late,
                             std::size_t maxGaps, Judgement& judgement) const {
  GapWalk walk(question, maxGaps, judgement);
  auto nextLate = late.begin();
  const auto takeLateUntil = [&](std::int64_t limit) {
    for (; nextLate != late.end() && spoilers[*nextLate].window.fromMs < limit; ++nextLate) {
      const Spoiler& spoiler = spoilers[*nextLate];
      walk.take(spoiler.window.fromMs, std::min(spoiler.lateToMs, spoiler.window.toMs),
                Finding::STARTED_LATE);
    }
  };
  // What no window covers is a hole between the first window and the last, empty ones too.
  const Window records = span.value_or(Window{question.toMs, question.toMs});
  const auto takeUncovered = [&](std::int64_t from, std::int64_t to) {
    walk.take(from, std::min(to, records.fromMs), Finding::BEYOND_RECORDS);
    walk.take(std::max(from, records.fromMs), std::min(to, records.toMs), Finding::HOLE);
    walk.take(std::max(from, records.toMs), to, Finding::BEYOND_RECORDS);
  };
  // Of the pieces that begin before the question only the last can reach into it.
  auto piece = covered.upper_bound(question.fromMs);
  std::int64_t coveredTo = question.fromMs;
  if (piece != covered.begin()) coveredTo = std::max(coveredTo, std::prev(piece)->second);
  for (; piece != covered.end() && piece->first < question.toMs; ++piece) {
    takeLateUntil(piece->first);
    takeUncovered(coveredTo, piece->first);
    coveredTo = piece->second;
  }
  takeLateUntil(question.toMs);
  takeUncovered(coveredTo, question.toMs);
}

}  // namespace cordon::records
