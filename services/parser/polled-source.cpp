#include "services/parser/polled-source.h"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "services/parser/guest-records.h"

namespace cordon::parser {
namespace {

std::span<const std::byte> toBytes(const kj::byte* bytes, std::size_t size) {
  return std::as_bytes(std::span(bytes, size));
}

std::uint64_t toMs(kj::Duration duration) {
  return static_cast<std::uint64_t>(duration / kj::MILLISECONDS);
}

void worsen(records::Coverage& answer, records::Coverage to) {
  answer = std::max(answer, to);
}

}  // namespace

void Spans::add(const records::Window& window) {
  const bool goesOn =
      !spans.empty() && spans.back().fromMs <= window.fromMs && window.fromMs <= spans.back().toMs;
  if (!goesOn && spans.size() < MAX) {
    spans.push_back(window);
    return;
  }
  spans.back().fromMs = std::min(spans.back().fromMs, window.fromMs);
  spans.back().toMs = std::max(spans.back().toMs, window.toMs);
}

bool Spans::intersect(const std::optional<records::Window>& asked) const {
  if (!asked) return !spans.empty();
  return std::any_of(spans.begin(), spans.end(), [&](const records::Window& span) {
    const bool isEmpty = span.fromMs == span.toMs;
    return span.fromMs < asked->toMs &&
           (span.toMs > asked->fromMs || (isEmpty && span.toMs == asked->fromMs));
  });
}

kj::Promise<void> PolledSource::Answer::write(kj::ArrayPtr<const kj::byte> bytes) {
  const auto old = static_cast<std::size_t>(
      std::min<std::uint64_t>(bytes.size(), known - std::min(known, total)));
  beginning.add(toBytes(bytes.begin(), old));
  total += bytes.size();
  const auto fresh = bytes.slice(old, bytes.size());
  const std::size_t room = std::min(fresh.size(), MAX_NEWS - news.size());
  news.append(fresh.asChars().begin(), room);
  hasMore = hasMore || room < fresh.size();
  return kj::READY_NOW;
}

PolledSource::PolledSource(std::string sourceName, kj::Duration allowedSilence,
                           std::size_t& unevenRecords, const Moment& begin)
    : name(std::move(sourceName)),
      allowed(allowedSilence),
      uneven(unevenRecords),
      reader([this](const records::Watermark& mark) { return take(mark); }),
      digest(RunningDigest().value()),
      newsAt(begin.monotonic) {}

bool PolledSource::isOpen() const {
  const records::Status status = reader.end().status;
  return !isRewritten && !isTooLong && status != records::Status::UNPARSABLE &&
         status != records::Status::REFUSED;
}

bool PolledSource::conclude(Answer& answer, const Outcome<Content>& outcome, const Moment& now) {
  if (const auto* failure = std::get_if<Failure>(&outcome)) {
    if (std::holds_alternative<FileLimit>(failure->reason)) {
      isTooLong = true;
    } else if (isMissingFile(*failure) && taken > 0) {
      isRewritten = true;
    } else {
      poll.lastFailure = *failure;
      return false;
    }
  }
  ++poll.answered;
  if (poll.firstAnswerMs == 0) poll.firstAnswerMs = now.wallMs;
  if (!isOpen()) return false;
  if (answer.total < taken || answer.beginning.value() != digest) {
    isRewritten = true;
    return false;
  }
  answer.beginning.add(std::as_bytes(std::span(answer.news)));
  taken += answer.news.size();
  digest = answer.beginning.value();
  arrival = now;
  reader.feed(std::as_bytes(std::span(answer.news)));
  return answer.hasMore && isOpen();
}

records::Reason PolledSource::take(const records::Watermark& mark) {
  if (mark.source != name) return records::Reason::WRONG_VALUE;
  if (!isEven(mark) && ++uneven > MAX_UNEVEN_RECORDS) return records::Reason::TOO_MANY_LINES;
  const records::Reason reason = ledger.add(mark);
  if (reason != records::Reason::NONE) return reason;
  const auto allowedMs = static_cast<std::int64_t>(toMs(allowed));
  if (mark.window.toMs > arrival.wallMs + allowedMs) ahead.add(mark.window);
  hearNews();
  isFinal = isFinal || mark.final;
  last = mark;
  return records::Reason::NONE;
}

bool PolledSource::isEven(const records::Watermark& mark) const {
  return last && mark.epoch == last->epoch && mark.seq == last->seq + 1 &&
         mark.window.fromMs == last->window.toMs && mark.window.fromMs <= mark.window.toMs &&
         mark.dropped == 0 && mark.aliveSinceMs == last->aliveSinceMs &&
         mark.aliveSinceMs <= mark.window.fromMs;
}

void PolledSource::hearNews() {
  const kj::Duration silence = silenceAt(arrival);
  poll.longestSilenceMs = std::max(poll.longestSilenceMs, toMs(silence));
  if (silence > allowed) {
    silences.add({.fromMs = arrival.wallMs - static_cast<std::int64_t>(toMs(silence)),
                  .toMs = arrival.wallMs});
  }
  newsAt = arrival.monotonic;
  poll.lastNewsMs = arrival.wallMs;
}

kj::Duration PolledSource::silenceAt(const Moment& now) const {
  // A source that said its last word owes nothing more.
  return isFinal ? 0 * kj::NANOSECONDS : now.monotonic - newsAt;
}

SourcePoll PolledSource::pollAt(const Moment& now) const {
  SourcePoll result = poll;
  const kj::Duration silence = silenceAt(now);
  result.longestSilenceMs = std::max(result.longestSilenceMs, toMs(silence));
  result.silent = silences.intersect(std::nullopt) || silence > allowed;
  return result;
}

records::CoverageReport PolledSource::judge(const std::optional<records::Window>& asked,
                                            const Moment& now) const {
  const records::LinesEnd end = reader.end();
  records::CoverageReport report;
  if (isTooLong || end.status == records::Status::UNPARSABLE ||
      end.status == records::Status::REFUSED) {
    report.status = isTooLong ? records::Status::REFUSED : end.status;
    report.reason = isTooLong ? records::Reason::TOO_MANY_BYTES : end.reason;
    report.line = isTooLong ? 0 : end.line;
    report.answer = records::Coverage::CONTRADICTORY;
    report.sources.push_back({.source = name, .answer = report.answer});
    return report;
  }
  report = ledger.answer(asked, end.tornTail);
  if (report.sources.empty()) {
    report.sources.push_back({.source = name});
    if (asked) {
      report.sources.back().gaps = {{.window = *asked, .why = records::Finding::BEYOND_RECORDS}};
      report.findings.add(records::Finding::BEYOND_RECORDS);
    }
  }
  const auto find = [&](records::Finding finding, records::Coverage answer) {
    report.findings.add(finding);
    worsen(report.answer, answer);
  };
  Spans silent = silences;
  const kj::Duration silence = silenceAt(now);
  if (silence > allowed) {
    silent.add(
        {.fromMs = now.wallMs - static_cast<std::int64_t>(toMs(silence)), .toMs = now.wallMs});
  }
  if (silent.intersect(asked)) find(records::Finding::SILENT, records::Coverage::INCOMPLETE);
  if (ahead.intersect(asked)) find(records::Finding::AHEAD_OF_HOST, records::Coverage::INCOMPLETE);
  if (isRewritten) find(records::Finding::REWRITTEN, records::Coverage::CONTRADICTORY);
  report.sources.back().answer = report.answer;
  return report;
}

}  // namespace cordon::parser
