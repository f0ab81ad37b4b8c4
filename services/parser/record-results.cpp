#include "services/parser/record-results.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/records/junit/reader.h"

namespace cordon::parser {
namespace {

// Of one call to a sink.
constexpr std::size_t MAX_PIECE_ITEMS = 256;
constexpr std::size_t MAX_PIECE_BYTES = std::size_t{512} << 10;

template <typename Bytes>
capnp::Data::Reader toData(const Bytes& bytes) {
  return capnp::Data::Reader(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size());
}

// Both sides number their enumerators alike; record-results_test.cpp compares the names.
template <typename To, typename From>
To toProtocol(From value) {
  return static_cast<To>(static_cast<std::uint16_t>(value));
}

template <typename Builder>
void writeFindings(const records::Findings& findings, Builder to) {
  std::vector<protocols::RecordFinding> list;
  for (std::size_t i = 0; i < records::FINDING_COUNT; ++i) {
    if (findings.has(static_cast<records::Finding>(i)))
      list.push_back(static_cast<protocols::RecordFinding>(i));
  }
  auto result = to.initFindings(static_cast<capnp::uint>(list.size()));
  for (capnp::uint i = 0; i < result.size(); ++i) result.set(i, list[i]);
}

template <typename Report, typename Builder>
void writeStatus(const Report& report, Builder to) {
  to.setStatus(toProtocol<protocols::RecordStatus>(report.status));
  to.setReason(toProtocol<protocols::RecordReason>(report.reason));
  writeFindings(report.findings, to);
  to.setTruncated(report.truncated);
}

std::size_t sizeOf(const records::JunitCase& of) {
  std::size_t size = of.className.size() + of.name.size() + of.text.size();
  for (const std::string& suite : of.suite) size += suite.size();
  return size;
}
std::size_t sizeOf(const records::VerdictRecord& of) {
  return of.check.size() + (of.goal ? of.goal->size() : 0) + (of.detail ? of.detail->size() : 0) +
         (of.proof ? of.proof->kind.size() : 0);
}

void write(const records::JunitCase& from, protocols::JunitCase::Builder to) {
  auto suite = to.initSuite(static_cast<capnp::uint>(from.suite.size()));
  for (capnp::uint i = 0; i < suite.size(); ++i) suite.set(i, toData(from.suite[i]));
  to.setClassName(toData(from.className));
  to.setName(toData(from.name));
  to.setOutcome(toProtocol<protocols::CaseOutcome>(from.outcome));
  to.setAttempts(from.attempts);
  to.setText(toData(from.text));
  to.setTruncated(from.truncated);
  to.setTextBytes(from.textBytes);
  if (from.truncated) to.setTextSha256(toData(from.textSha256));
}

void write(const records::VerdictRecord& from, protocols::VerdictRecord::Builder to) {
  to.setSeq(from.seq);
  to.setCheck(toData(from.check));
  to.setHasGoal(from.goal.has_value());
  if (from.goal) to.setGoal(toData(*from.goal));
  to.setOutcome(toProtocol<protocols::VerdictOutcome>(from.outcome));
  to.setObservedMs(from.observedMs);
  if (from.proof) {
    to.setProofKind(toData(from.proof->kind));
    to.setProofSha256(toData(from.proof->sha256));
  }
  to.setHasDetail(from.detail.has_value());
  if (from.detail) to.setDetail(toData(*from.detail));
}

// How many items from `first` on are the next piece: at least one.
template <typename Item>
std::size_t pieceFrom(const std::vector<Item>& items, std::size_t first) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  const std::size_t most = std::min(MAX_PIECE_ITEMS, items.size() - first);
  while (count < most) {
    bytes += sizeOf(items[first + count]);
    if (count > 0 && bytes > MAX_PIECE_BYTES) break;
    ++count;
  }
  return count;
}

// Writes pieces one after the other: a call waits until the connection has room for it.
template <typename Item, typename Sink, typename Init>
kj::Promise<void> writeFrom(const std::vector<Item>& items, std::size_t first, Sink sink,
                            Init init) {
  if (first == items.size()) return sink.endRequest().send().ignoreResult();
  const std::size_t count = pieceFrom(items, first);
  auto request = sink.writeRequest();
  auto list = init(request, static_cast<capnp::uint>(count));
  for (capnp::uint i = 0; i < list.size(); ++i) write(items[first + i], list[i]);
  return request.send().then([&items, next = first + count, sink = kj::mv(sink), init]() mutable {
    return writeFrom(items, next, kj::mv(sink), init);
  });
}

}  // namespace

void writeReaderFacts(protocols::ReaderFacts::Builder to) {
  const records::ExpatFacts facts = records::expatFacts();
  to.setExpatVersion(facts.version.c_str());
  to.setExpatAllocationTracker(facts.allocationTracker);
}

void writeReport(const records::JunitReport& report, protocols::JunitReport::Builder to) {
  writeStatus(report, to);
  to.setOffset(report.offset);
  to.setCases(report.totals.cases);
  to.setPassed(report.totals.passed);
  to.setFailed(report.totals.failed);
  to.setErrored(report.totals.errored);
  to.setSkipped(report.totals.skipped);
  to.setFlaky(report.totals.flaky);
  to.setUnknown(report.totals.unknown);
  to.setGreen(report.green);
  to.setClaimsMismatch(report.claimsMismatch);
  if (report.status == records::Status::OK)
    to.setListed(static_cast<std::uint32_t>(report.cases.size()));
  to.setForeignElements(report.foreignElements);
  to.setUnknownElements(report.unknownElements);
}

void writeReport(const records::VerdictsReport& report, protocols::VerdictsReport::Builder to) {
  writeStatus(report, to);
  to.setLine(report.line);
  to.setRun(toData(report.run));
  to.setRecords(report.records);
  const auto countOf = [&](records::VerdictOutcome outcome) {
    return report.outcomes.at(static_cast<std::size_t>(outcome));
  };
  to.setPassed(countOf(records::VerdictOutcome::PASS));
  to.setFailed(countOf(records::VerdictOutcome::FAIL));
  to.setErrored(countOf(records::VerdictOutcome::ERROR));
  to.setSkipped(countOf(records::VerdictOutcome::SKIP));
  to.setTamper(report.tamper);
  to.setGreen(report.green);
  if (report.status == records::Status::OK)
    to.setListed(static_cast<std::uint32_t>(report.list.size()));
}

void writeReport(const records::CoverageReport& report, protocols::CoverageReport::Builder to) {
  writeStatus(report, to);
  to.setLine(report.line);
  to.setAnswer(toProtocol<protocols::CoverageAnswer>(report.answer));
  auto sources = to.initSources(static_cast<capnp::uint>(report.sources.size()));
  for (capnp::uint i = 0; i < sources.size(); ++i) {
    const records::SourceCoverage& from = report.sources[i];
    auto source = sources[i];
    source.setSource(toData(from.source));
    source.setAnswer(toProtocol<protocols::CoverageAnswer>(from.answer));
    source.setDropped(from.dropped);
    source.setRestarts(from.restarts);
    auto gaps = source.initGaps(static_cast<capnp::uint>(from.gaps.size()));
    for (capnp::uint j = 0; j < gaps.size(); ++j) {
      gaps[j].setFromMs(from.gaps[j].window.fromMs);
      gaps[j].setToMs(from.gaps[j].window.toMs);
      gaps[j].setWhy(toProtocol<protocols::RecordFinding>(from.gaps[j].why));
    }
  }
}

std::optional<AskedWindow> readWindow(protocols::CoverageWindow::Reader window) {
  if (window.isWhole()) return AskedWindow{};
  if (!window.isBounds()) return std::nullopt;
  const records::Window bounds{.fromMs = window.getBounds().getFromMs(),
                               .toMs = window.getBounds().getToMs()};
  if (bounds.fromMs >= bounds.toMs) return std::nullopt;
  return AskedWindow{.bounds = bounds};
}

kj::Promise<void> writeList(const records::JunitReport& report, protocols::CaseSink::Client sink) {
  if (report.status != records::Status::OK) return kj::READY_NOW;
  return writeFrom(report.cases, 0, kj::mv(sink),
                   [](auto& request, capnp::uint size) { return request.initCases(size); });
}

kj::Promise<void> writeList(const records::VerdictsReport& report,
                            protocols::VerdictSink::Client sink) {
  if (report.status != records::Status::OK) return kj::READY_NOW;
  return writeFrom(report.list, 0, kj::mv(sink),
                   [](auto& request, capnp::uint size) { return request.initRecords(size); });
}

}  // namespace cordon::parser
