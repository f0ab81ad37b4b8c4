// Held for every input, taken as a file of verdict records: the report does not depend on how the
// file is cut, and is what the oracle makes of it; a file that is not OK holds nothing.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "common/records/lines/fuzz/checks.h"
#include "common/records/lines/fuzz/oracle.h"
#include "common/records/verdicts/verdicts-reader.h"

using namespace cordon::records;

namespace {

struct Expected {
  std::string run;
  std::string lineRun;
  std::int64_t seq = 0;
  std::string outcome;
  std::int64_t highest = 0;
  std::map<std::string, std::uint64_t> outcomes;
  bool tamper = false;
  bool finding = false;

  void take() {
    if (outcomes.empty()) run = lineRun;
    ++outcomes[outcome];
    finding = finding || run != lineRun || seq > highest + 1;
    tamper = tamper || seq <= highest;
    highest = std::max(highest, seq);
  }
  bool green() const {
    return !tamper && !finding && outcomes.contains("pass") && !outcomes.contains("fail") &&
           !outcomes.contains("error");
  }
};

fuzz::Spec specOf(Expected& expected, const fuzz::Spec& proof) {
  const auto anyText = [](std::string_view) { return true; };
  const auto anyNumber = [](std::int64_t) { return true; };
  return {{{"v", fuzz::integer([](std::int64_t value) { return value == 1; })},
           {"run", fuzz::text([&](std::string_view value) {
              expected.lineRun = value;
              return fuzz::isHex(value, 32);
            })},
           {"seq", fuzz::integer([&](std::int64_t value) {
              expected.seq = value;
              return value > 0;
            })},
           {"check", fuzz::text(anyText)},
           {"goal", fuzz::text(anyText)},
           {"outcome", fuzz::text([&](std::string_view value) {
              expected.outcome = value;
              return value == "pass" || value == "fail" || value == "error" || value == "skip";
            })},
           {"observed_ms", fuzz::integer(anyNumber)},
           {"tier", fuzz::text([](std::string_view value) { return value == "T3"; })},
           {"proof", fuzz::object(proof)},
           {"detail", fuzz::text(anyText, true, 16384)}},
          {"goal", "proof", "detail"}};
}

const fuzz::Spec PROOF{
    {{"kind", fuzz::text([](std::string_view value) {
        return !value.empty() && value.size() <= 32 && std::ranges::all_of(value, [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
        });
      })},
     {"sha256", fuzz::text([](std::string_view value) { return fuzz::isHex(value, 64); })}},
    {}};

bool isSame(const VerdictsReport& a, const VerdictsReport& b) {
  const auto isSameRecord = [](const VerdictRecord& x, const VerdictRecord& y) {
    return x.seq == y.seq && x.check == y.check && x.goal == y.goal && x.outcome == y.outcome &&
           x.observedMs == y.observedMs && x.detail == y.detail &&
           x.proof.has_value() == y.proof.has_value() &&
           (!x.proof || (x.proof->kind == y.proof->kind && x.proof->sha256 == y.proof->sha256));
  };
  return a.status == b.status && a.reason == b.reason && a.line == b.line && a.run == b.run &&
         a.records == b.records && a.outcomes == b.outcomes && a.tamper == b.tamper &&
         a.green == b.green && a.findings == b.findings && a.truncated == b.truncated &&
         std::ranges::equal(a.list, b.list, isSameRecord);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto readCut = [&](auto&& nextStep) {
    VerdictsReader reader;
    fuzz::feedCut(reader, file, nextStep);
    return reader.finish();
  };
  const VerdictsReport report = readCut(fuzz::whole);
  if (size <= fuzz::MAX_SINGLE)
    fuzz::require(isSame(readCut(fuzz::single), report), "one byte at a time");
  fuzz::require(isSame(readCut(fuzz::Random()), report), "cut anywhere");

  Expected expected;
  const fuzz::FileJudged judged =
      fuzz::judgeFile(file, specOf(expected, PROOF), [&] { expected.take(); });
  fuzz::requireStatus(judged, report.status, report.reason, report.line);
  if (judged.judged != fuzz::Judged::GOOD) {
    VerdictsReport nothing;
    nothing.status = report.status;
    nothing.reason = report.reason;
    nothing.line = report.line;
    fuzz::require(isSame(report, nothing), "a bad line voids the file");
    return 0;
  }
  fuzz::require(report.records == judged.records, "as many records");
  fuzz::require(
      report.outcomes ==
          decltype(report.outcomes){expected.outcomes["pass"], expected.outcomes["fail"],
                                    expected.outcomes["error"], expected.outcomes["skip"]},
      "the same outcomes");
  std::erase_if(expected.outcomes, [](const auto& outcome) { return outcome.second == 0; });
  expected.finding = expected.finding || judged.torn;
  fuzz::require(report.tamper == expected.tamper, "the same of tamper");
  fuzz::require(report.green == expected.green(), "the same of green");
  fuzz::require(report.findings.empty() == (!expected.finding && !expected.tamper),
                "findings where there are any");
  return 0;
}
