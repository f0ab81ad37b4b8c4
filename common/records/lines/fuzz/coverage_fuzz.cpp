// Held for every input, taken as a file of watermarks: the answer does not depend on how the file
// is cut, and the file is good or bad as the oracle says. Where the windows are short, each source
// is judged as its milliseconds, one by one, are.
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "common/records/coverage/coverage-reader.h"
#include "common/records/coverage/testing/brute-force.h"
#include "common/records/lines/fuzz/checks.h"
#include "common/records/lines/fuzz/oracle.h"

using namespace cordon::records;

namespace {

constexpr std::int64_t SHORT_MS = 5000;

fuzz::Spec specOf(Watermark& mark) {
  const auto any = [](std::int64_t& to) {
    return fuzz::integer([&to](std::int64_t value) {
      to = value;
      return true;
    });
  };
  const auto atLeast = [](std::int64_t least, std::int64_t& to) {
    return fuzz::integer([least, &to](std::int64_t value) {
      to = value;
      return value >= least;
    });
  };
  return {{{"v", fuzz::integer([](std::int64_t value) { return value == 1; })},
           {"source", fuzz::text(
                          [&](std::string_view value) {
                            mark.source = value;
                            return true;
                          },
                          false, 256)},
           {"epoch", any(mark.epoch)},
           {"seq", atLeast(1, mark.seq)},
           {"window_ms", fuzz::pair([&](std::size_t index, std::int64_t value) {
              (index == 0 ? mark.window.fromMs : mark.window.toMs) = value;
            })},
           {"events", atLeast(0, mark.events)},
           {"bytes", atLeast(0, mark.bytes)},
           {"dropped", atLeast(0, mark.dropped)},
           {"backlog", atLeast(0, mark.backlog)},
           {"alive_since_ms", any(mark.aliveSinceMs)},
           {"final", fuzz::flag([&](bool value) { mark.final = value; })}},
          {"final"}};
}

bool isSameGap(const Gap& a, const Gap& b) {
  return a.window == b.window && a.why == b.why;
}

bool isSameSource(const SourceCoverage& a, const SourceCoverage& b) {
  return a.source == b.source && a.answer == b.answer && a.dropped == b.dropped &&
         a.restarts == b.restarts && std::ranges::equal(a.gaps, b.gaps, isSameGap);
}

bool isSame(const CoverageReport& a, const CoverageReport& b) {
  return a.status == b.status && a.reason == b.reason && a.line == b.line && a.answer == b.answer &&
         a.findings == b.findings && a.truncated == b.truncated &&
         std::ranges::equal(a.sources, b.sources, isSameSource);
}

using Sources = std::vector<std::pair<std::string, std::vector<Watermark>>>;

bool areShort(const Sources& sources) {
  const auto isShort = [](const Watermark& mark) {
    return std::abs(mark.window.fromMs) <= SHORT_MS && std::abs(mark.window.toMs) <= SHORT_MS;
  };
  return std::ranges::all_of(sources, [&](const auto& source) {
    return source.second.size() <= 8 && std::ranges::all_of(source.second, isShort);
  });
}

CoverageReport expectedOf(const Sources& sources, const std::optional<Window>& asked, bool torn) {
  CoverageReport report;
  if (torn) report.findings.add(Finding::TORN_TAIL);
  if (sources.empty()) return report;
  report.status = Status::OK;
  report.answer = Coverage::COMPLETE;
  for (const auto& [name, marks] : sources) {
    auto judged = testing::judgeByMillisecond(marks, asked);
    const bool isFinal = std::ranges::any_of(marks, &Watermark::final);
    if (torn && !isFinal) judged.source.answer = std::max(judged.answer, Coverage::INCOMPLETE);
    judged.source.source = name;
    report.answer = std::max(report.answer, judged.source.answer);
    report.findings.add(judged.findings);
    report.sources.push_back(std::move(judged.source));
  }
  return report;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto readCut = [&](auto&& nextStep, const std::optional<Window>& asked) {
    CoverageReader reader;
    fuzz::feedCut(reader, file, nextStep);
    return reader.finish(asked);
  };
  const CoverageReport report = readCut(fuzz::whole, std::nullopt);
  if (size <= fuzz::MAX_SINGLE)
    fuzz::require(isSame(readCut(fuzz::single, std::nullopt), report), "one byte at a time");
  fuzz::require(isSame(readCut(fuzz::Random(), std::nullopt), report), "cut anywhere");

  Watermark mark;
  Sources sources;
  const fuzz::Spec spec = specOf(mark);
  const fuzz::FileJudged judged = fuzz::judgeFile(file, spec, [&] {
    auto source = std::ranges::find(sources, mark.source, &Sources::value_type::first);
    if (source == sources.end()) source = sources.insert(source, {mark.source, {}});
    source->second.push_back(mark);
    mark = {};
  });
  if (sources.size() > 1024) return 0;
  fuzz::requireStatus(judged, report.status, report.reason, report.line);
  if (judged.judged != fuzz::Judged::GOOD) {
    fuzz::require(report.answer == Coverage::CONTRADICTORY && report.sources.empty() &&
                      report.findings.empty(),
                  "a bad line voids the file");
    return 0;
  }
  if (!areShort(sources)) return 0;
  const Window part{static_cast<std::int64_t>(size % 97) - 5, 1500};
  fuzz::require(isSame(report, expectedOf(sources, std::nullopt, judged.torn)), "as milliseconds");
  fuzz::require(isSame(readCut(fuzz::whole, part), expectedOf(sources, part, judged.torn)),
                "as milliseconds of a part");
  return 0;
}
