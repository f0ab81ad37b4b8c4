#include "services/cli/read/human-view.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/log/visible.h"
#include "services/cli/read/json-view.h"
#include "services/cli/read/words.h"

namespace cordon::cli {
namespace {

constexpr std::size_t MAX_LISTED = 40;       // lines of one list
constexpr std::size_t MAX_NAME_BYTES = 200;  // of one name in a line
constexpr std::size_t LABEL_WIDTH = 10;

enum class Tone { GOOD, BAD, DOUBTFUL };

class Page {
 public:
  explicit Page(ViewStyle pageStyle) : style(pageStyle) {}

  void line(std::string_view label, std::string_view text) {
    out += "  ";
    out += label;
    out.append(label.size() < LABEL_WIDTH ? LABEL_WIDTH - label.size() : 1, ' ');
    out += text;
    out += '\n';
  }

  void title(const std::string& path, std::string_view what, std::string_view verdict, Tone tone) {
    out += log::visible(path) + ": " + std::string(what) + ": ";
    out += style.colour ? colourOf(tone) : "";
    out += verdict;
    out += style.colour ? "\x1b[0m" : "";
    out += '\n';
  }

  std::string take() { return std::move(out); }

 private:
  static std::string_view colourOf(Tone tone) {
    switch (tone) {
      case Tone::GOOD:
        return "\x1b[32m";
      case Tone::BAD:
        return "\x1b[31m";
      case Tone::DOUBTFUL:
        return "\x1b[33m";
    }
    return "";
  }

  ViewStyle style;
  std::string out;
};

// Cut where it is long, at a whole character.
std::string shown(std::string_view text) {
  if (text.size() <= MAX_NAME_BYTES) return log::visible(text);
  std::size_t end = MAX_NAME_BYTES;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return log::visible(text.substr(0, end)) + "…";
}

std::string counted(std::uint64_t number, std::string_view one, std::string_view many) {
  return std::to_string(number) + ' ' + std::string(number == 1 ? one : many);
}

// "3 passed, 1 failed": those that are not 0.
std::string enumerate(const std::vector<std::pair<std::uint64_t, std::string_view>>& numbers) {
  std::string text;
  for (const auto& [number, name] : numbers) {
    if (number == 0) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(number) + ' ' + std::string(name);
  }
  return text;
}

// place: of the violation; empty where the reason has none.
void showStatus(Page& page, records::Status status, records::Reason reason,
                const std::string& place) {
  switch (status) {
    case records::Status::OK:
      return;
    case records::Status::EMPTY:
      page.line("why", "there is nothing in it to judge");
      page.line("remedy", "see whether its producer ran at all");
      return;
    case records::Status::MISSING:
      page.line("why", "there is no such file");
      page.line("remedy", "check the path; a link may lead nowhere");
      return;
    case records::Status::UNPARSABLE:
    case records::Status::REFUSED:
      break;
  }
  const auto words = wordsOf(reason);
  std::string why(words.meaning);
  why += " (";
  why += records::nameOf(reason);
  why += ')';
  page.line("why", why);
  if (!place.empty()) page.line("where", place);
  if (!words.remedy.empty()) page.line("remedy", words.remedy);
}

bool isOfWhoOpens(records::Reason reason) {
  return reason >= records::Reason::NOT_REGULAR || reason == records::Reason::OUT_OF_TIME;
}

void showFindings(Page& page, const records::Findings& findings) {
  std::string_view label = "findings";
  for (std::size_t i = 0; i < records::FINDING_COUNT; ++i) {
    const auto finding = static_cast<records::Finding>(i);
    if (!findings.has(finding)) continue;
    page.line(label, std::string(records::nameOf(finding)) + ": " + std::string(wordsOf(finding)));
    label = "";
  }
}

void showMore(Page& page, std::uint64_t listed, std::uint64_t total, std::string_view what) {
  if (total > listed) page.line("", "… and " + std::to_string(total - listed) + std::string(what));
}

std::string nameOfCase(const records::JunitCase& one) {
  std::string name;
  for (const auto& suite : one.suite) {
    if (!suite.empty()) name += shown(suite) + " > ";
  }
  if (!one.className.empty()) name += shown(one.className) + " > ";
  name += one.name.empty() ? "(nameless)" : shown(one.name);
  if (one.attempts > 1) name += "  (" + std::to_string(one.attempts) + " attempts)";
  return name;
}

std::string_view verdictOf(records::Status status, bool green) {
  if (green) return "green";
  return status == records::Status::OK ? "not green" : records::nameOf(status);
}

Tone toneOf(records::Status status, bool green) {
  if (green) return Tone::GOOD;
  return status == records::Status::EMPTY || status == records::Status::MISSING ? Tone::DOUBTFUL
                                                                                : Tone::BAD;
}

// The worst first, each as often as the file has it, passes and skips last.
void showCases(Page& page, const records::JunitReport& report) {
  std::vector<const records::JunitCase*> order;
  order.reserve(report.cases.size());
  for (const auto& one : report.cases) order.push_back(&one);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->outcome > b->outcome; });
  const std::size_t listed = std::min(order.size(), MAX_LISTED);
  for (std::size_t i = 0; i < listed; ++i)
    page.line(nameOf(order[i]->outcome), nameOfCase(*order[i]));
  showMore(page, listed, report.totals.cases, " more");
}

}  // namespace

std::string toText(const std::string& path, const records::JunitReport& report, ViewStyle style) {
  Page page(style);
  page.title(path, "JUnit report", verdictOf(report.status, report.green),
             toneOf(report.status, report.green));
  const std::string place =
      isOfWhoOpens(report.reason) ? "" : "behind byte " + std::to_string(report.offset);
  showStatus(page, report.status, report.reason, place);
  if (report.status != records::Status::OK) return page.take();
  const auto& totals = report.totals;
  page.line("totals",
            counted(totals.cases, "case: ", "cases: ") + enumerate({{totals.errored, "errored"},
                                                                    {totals.failed, "failed"},
                                                                    {totals.unknown, "unknown"},
                                                                    {totals.flaky, "flaky"},
                                                                    {totals.skipped, "skipped"},
                                                                    {totals.passed, "passed"}}));
  if (totals.passed == 0) page.line("note", "no case passed: that is never green");
  if (report.claimsMismatch) {
    page.line("claims", "the report's own counts are not those of its cases");
  }
  showFindings(page, report.findings);
  if (report.truncated) page.line("note", "the list of cases, or text in it, was cut");
  showCases(page, report);
  return page.take();
}

std::string toText(const std::string& path, const records::VerdictsReport& report,
                   ViewStyle style) {
  Page page(style);
  const std::string_view verdict =
      report.tamper ? std::string_view("tampered with") : verdictOf(report.status, report.green);
  page.title(path, "verdict records", verdict, toneOf(report.status, report.green));
  showStatus(page, report.status, report.reason,
             isOfWhoOpens(report.reason) ? "" : "line " + std::to_string(report.line));
  if (report.status != records::Status::OK) return page.take();
  const auto& outcomes = report.outcomes;
  page.line("totals",
            counted(report.records, "record: ", "records: ") + enumerate({{outcomes[2], "error"},
                                                                          {outcomes[1], "fail"},
                                                                          {outcomes[3], "skip"},
                                                                          {outcomes[0], "pass"}}));
  if (outcomes[0] == 0) page.line("note", "no record passes: that is never green");
  showFindings(page, report.findings);
  if (report.truncated) page.line("note", "the list of records was cut");
  std::size_t listed = 0;
  for (const auto worst : {records::VerdictOutcome::ERROR, records::VerdictOutcome::FAIL,
                           records::VerdictOutcome::SKIP, records::VerdictOutcome::PASS}) {
    for (const auto& one : report.list) {
      if (one.outcome != worst || listed == MAX_LISTED) continue;
      ++listed;
      std::string text = shown(one.check);
      if (one.goal) text += "  (goal " + shown(*one.goal) + ")";
      if (one.detail && worst != records::VerdictOutcome::PASS) text += ": " + shown(*one.detail);
      page.line(nameOf(one.outcome), text);
    }
  }
  showMore(page, listed, report.records, " more");
  return page.take();
}

std::string toText(const std::string& path, const records::CoverageReport& report,
                   ViewStyle style) {
  Page page(style);
  const bool isComplete = report.answer == records::Coverage::COMPLETE;
  const bool isRead = report.status == records::Status::OK;
  page.title(path, "coverage", isRead ? nameOf(report.answer) : records::nameOf(report.status),
             toneOf(report.status, isComplete));
  showStatus(page, report.status, report.reason,
             isOfWhoOpens(report.reason) ? "" : "line " + std::to_string(report.line));
  if (!isRead) return page.take();
  showFindings(page, report.findings);
  std::vector<const records::SourceCoverage*> order;
  order.reserve(report.sources.size());
  for (const auto& source : report.sources) order.push_back(&source);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->answer > b->answer; });
  std::size_t lines = 0;
  std::size_t sources = 0;
  for (const auto* source : order) {
    if (lines >= MAX_LISTED) break;
    ++lines;
    ++sources;
    std::string text = source->source.empty() ? "(nameless)" : shown(source->source);
    text += ": " + std::string(nameOf(source->answer));
    const std::string counts =
        enumerate({{source->dropped, "dropped"}, {source->restarts, "restarts"}});
    if (!counts.empty()) text += ", " + counts;
    page.line("source", text);
    const std::size_t gaps =
        std::min(source->gaps.size(), MAX_LISTED - std::min(lines, MAX_LISTED));
    for (std::size_t i = 0; i < gaps; ++i) {
      const auto& gap = source->gaps[i];
      page.line("  gap", std::to_string(gap.window.fromMs) + " to " +
                             std::to_string(gap.window.toMs) +
                             " ms: " + std::string(wordsOf(gap.why)));
    }
    lines += gaps;
    showMore(page, gaps, source->gaps.size(), " more gaps");
  }
  showMore(page, sources, order.size(), " more sources");
  if (report.truncated) page.line("note", "the list of gaps was cut");
  return page.take();
}

}  // namespace cordon::cli
