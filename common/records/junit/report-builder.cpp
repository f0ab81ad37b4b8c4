#include "common/records/junit/report-builder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "common/channel/sha256.h"
#include "common/records/junit/text-scan.h"

namespace cordon::records {

namespace {

using channel::Sha256;
using channel::Sha256Hasher;

std::string_view localNameOf(std::string_view name) {
  const std::size_t separator = name.rfind(NAMESPACE_SEPARATOR);
  return separator == std::string_view::npos ? name : name.substr(separator + 1);
}

bool isForeign(std::string_view name) {
  return name.find(NAMESPACE_SEPARATOR) != std::string_view::npos;
}

// What stands for a name in a set: itself, or the digest of a long one.
std::string identityOf(std::string_view name) {
  constexpr std::size_t LONG = 64;
  if (name.size() < LONG) return std::string(name);
  const Sha256 digest = channel::sha256Of(name);
  return {digest.begin(), digest.end()};
}

Sha256 pathBelow(const Sha256& outer, std::string_view name) {
  Sha256Hasher hasher;
  hasher.update(std::as_bytes(std::span(outer)));
  hasher.update(std::as_bytes(std::span(name)));
  return hasher.finish();
}

CaseKey keyOf(const Sha256& path, std::string_view className, std::string_view name) {
  const std::array<std::uint64_t, 1> length{className.size()};
  Sha256Hasher hasher;
  hasher.update(std::as_bytes(std::span(path)));
  hasher.update(std::as_bytes(std::span(length)));
  hasher.update(std::as_bytes(std::span(className)));
  hasher.update(std::as_bytes(std::span(name)));
  return CaseKey(hasher.finish());
}

std::size_t indexOf(CaseOutcome outcome) {
  return static_cast<std::size_t>(outcome);
}

// A status that is a verdict, and not only says that the case was run to its end.
bool isVerdict(std::string_view status) {
  return !equalsIgnoringCase(status, "run") && !equalsIgnoringCase(status, "completed");
}

bool isAttempt(Word word) {
  return word >= Word::FLAKY_FAILURE && word <= Word::RERUN_ERROR;
}

}  // namespace

ReportBuilder::ReportBuilder(const JunitLimits& caps, MemoryBudget& memory)
    : limits(caps), budget(memory), list(caps, memory), keys(caps.keys, memory) {
  report.status = Status::OK;
}

// ---- names ----

Reason ReportBuilder::declareNamespace(const char* prefix, const char* uri) {
  std::string declaration = prefix == nullptr ? "" : prefix;
  declaration += NAMESPACE_SEPARATOR;
  if (uri != nullptr) declaration += uri;
  namespaces.insert(identityOf(declaration));
  return namespaces.size() > limits.namespaces ? Reason::TOO_MANY_NAMESPACES : Reason::NONE;
}

bool ReportBuilder::countName(std::string_view name, Word word) {
  if (word == Word::OTHER) {
    if (!otherNames.insert(identityOf(name)).second) return true;
  } else {
    if (knownNames.test(static_cast<std::size_t>(word))) return true;
    knownNames.set(static_cast<std::size_t>(word));
  }
  return knownNames.count() + otherNames.size() <= limits.names;
}

Reason ReportBuilder::readAttributes(const char* const* given) {
  attributes.clear();
  for (; *given != nullptr; given += 2) {
    if (attributes.size() == limits.attributes) return Reason::TOO_MANY_ATTRIBUTES;
    const std::string_view name = given[0];
    const Word word = wordOf(name);
    if (!countName(name, word)) return Reason::TOO_MANY_NAMES;
    attributes.push_back({word, name, given[1]});
  }
  return Reason::NONE;
}

// ---- elements ----

Reason ReportBuilder::startElement(std::string_view name, const char* const* given) {
  if (++elementCount > limits.elements) return Reason::TOO_MANY_ELEMENTS;
  if (frames.size() + foreignDepth == limits.depth) return Reason::TOO_DEEP;
  const Word word = wordOf(name);
  if (frames.empty() && word != Word::TESTSUITES && word != Word::TESTSUITE) {
    return Reason::FOREIGN_ROOT;
  }
  if (!countName(name, word)) return Reason::TOO_MANY_NAMES;
  if (const Reason refused = readAttributes(given); refused != Reason::NONE) return refused;

  if (foreignDepth > 0 || isForeign(name)) {
    startForeign(localNameOf(name));
    return Reason::NONE;
  }
  Frame frame = frames.empty() ? Frame{} : frames.back();
  frame.kind = Kind::PLAIN;
  Reason refused = Reason::NONE;
  const Word result = word == Word::OTHER ? resultWordOf(name) : word;
  if (isResult(result)) {
    refused = openResult(result, frame);
  } else if (word == Word::TESTSUITES || word == Word::TESTSUITE) {
    frame.kind = Kind::SUITE;
    refused = openSuite(word);
  } else if (word == Word::TESTCASE) {
    frame = {.kind = Kind::CASE};
    refused = openCase();
  } else if ((word == Word::SYSTEM_OUT || word == Word::SYSTEM_ERR) && !cases.empty()) {
    frame.kind = Kind::OUTPUT;
    frame.inOutput = true;
    frame.kept = true;
    beginPart(cases.back());
  } else if (!isElement(word)) {
    ++report.unknownElements;
  }
  frames.push_back(frame);
  return refused;
}

void ReportBuilder::endElement() {
  if (foreignDepth > 0) {
    --foreignDepth;
    return;
  }
  const Kind kind = frames.back().kind;
  frames.pop_back();
  if (kind == Kind::SUITE) closeSuite();
  if (kind == Kind::CASE || kind == Kind::ORPHAN) closeCase();
}

void ReportBuilder::text(std::string_view text) {
  if (foreignDepth > 0 || frames.empty() || !frames.back().kept) return;
  Case& open = cases.back();
  if (open.listed == CaseList::NONE) return;
  if (std::exchange(open.newPart, false)) list.append(open.listed, "\n");
  open.hasText = true;
  list.append(open.listed, text);
}

void ReportBuilder::beginPart(Case& open) {
  open.newPart = open.hasText;
}

// Whatever stands in another namespace is not this format's. But a verdict that is hidden there
// must not leave its case a pass.
void ReportBuilder::startForeign(std::string_view localName) {
  ++foreignDepth;
  ++report.foreignElements;
  report.findings.add(Finding::FOREIGN_CONTENT);
  if (!isResult(resultWordOf(localName))) return;
  report.findings.add(Finding::FOREIGN_RESULT);
  if (Case* open = innermostCase()) open->outcome = std::max(open->outcome, CaseOutcome::UNKNOWN);
}

// ---- suites ----

Reason ReportBuilder::openSuite(Word word) {
  Suite suite;
  suite.named = word == Word::TESTSUITE;
  std::string_view name;
  for (const Attribute& attribute : attributes) {
    if (attribute.word == Word::NAME) name = attribute.value;
    if (!suite.claims.read(attribute.word, attribute.value)) {
      report.findings.add(Finding::BAD_CLAIM);
      report.claimsMismatch = true;
    }
  }
  suite.path = suites.empty() ? Sha256{} : suites.back().path;
  if (suite.named) {
    suite.path = pathBelow(suite.path, name);
    const std::string_view kept = cutText(name, limits.caseBytes);
    if (!budget.take(kept.size())) return Reason::OUT_OF_MEMORY;
    suite.name = kept;
    suite.cut = kept.size() < name.size();
  }
  suites.push_back(std::move(suite));
  return Reason::NONE;
}

void ReportBuilder::closeSuite() {
  const Suite& suite = suites.back();
  if (suite.claims.contradicts(suite.count)) {
    report.findings.add(Finding::CLAIM_MISMATCH);
    report.claimsMismatch = true;
  }
  excessClaims |= suite.claims.exceeds(suite.count);
  budget.give(suite.name.size());
  if (suites.size() > 1) suites[suites.size() - 2].count += suite.count;
  suites.pop_back();
}

// ---- cases ----

ReportBuilder::Case* ReportBuilder::innermostCase() {
  // An orphan is never opened inside a case, so the innermost one says it all.
  return cases.empty() || cases.back().orphan ? nullptr : &cases.back();
}

Reason ReportBuilder::openCase() {
  std::string_view name;
  std::string_view className;
  for (const Attribute& attribute : attributes) {
    if (attribute.word == Word::NAME) name = attribute.value;
    if (attribute.word == Word::CLASSNAME) className = attribute.value;
  }
  if (innermostCase() != nullptr) report.findings.add(Finding::NESTED_CASE);
  if (const Reason refused = enterCase(className, name, false); refused != Reason::NONE) {
    return refused;
  }
  Case& open = cases.back();
  for (const Attribute& attribute : attributes) {
    if (attribute.word != Word::STATUS && attribute.word != Word::RESULT &&
        !(attribute.word == Word::OTHER && (equalsIgnoringCase(attribute.name, "status") ||
                                            equalsIgnoringCase(attribute.name, "result")))) {
      continue;
    }
    const CaseOutcome outcome = outcomeOfStatus(attribute.value);
    open.outcome = std::max(open.outcome, outcome);
    if (outcome == CaseOutcome::UNKNOWN) {
      report.findings.add(Finding::UNKNOWN_STATUS);
    } else if (isVerdict(attribute.value)) {
      open.said.set(indexOf(outcome));
    }
  }
  return Reason::NONE;
}

Reason ReportBuilder::openOrphan() {
  report.findings.add(Finding::RESULT_OUTSIDE_CASE);
  const Reason refused = enterCase({}, {}, true);
  if (refused == Reason::NONE) cases.back().outcome = CaseOutcome::ERRORED;
  return refused;
}

Reason ReportBuilder::enterCase(std::string_view className, std::string_view name, bool orphan) {
  Case open{.orphan = orphan, .nameless = name.empty()};
  if (open.nameless) {
    report.findings.add(Finding::NAMELESS_CASE);
    if (caseCount == limits.keys) return Reason::TOO_MANY_CASES;
    ++caseCount;
    open.listed = listCase(className, name);
    cases.push_back(open);
    return Reason::NONE;
  }
  open.key = keyOf(suites.back().path, className, name);
  switch (keys.insert(open.key)) {
    case KeyTable::Insertion::FRESH:
      if (caseCount == limits.keys) return Reason::TOO_MANY_CASES;
      ++caseCount;
      open.listed = listCase(className, name);
      if (open.listed != CaseList::NONE) listedKeys.emplace(open.key, open.listed);
      break;
    case KeyTable::Insertion::KNOWN: {
      report.findings.add(Finding::REPEATED_CASE);
      const auto listed = listedKeys.find(open.key);
      if (listed != listedKeys.end()) open.listed = listed->second;
      open.hasText = open.newPart = true;
      break;
    }
    case KeyTable::Insertion::FULL:
      return Reason::TOO_MANY_CASES;
    case KeyTable::Insertion::NO_MEMORY:
      return Reason::OUT_OF_MEMORY;
  }
  cases.push_back(open);
  return Reason::NONE;
}

CaseList::Index ReportBuilder::listCase(std::string_view className, std::string_view name) {
  if (!list.open()) return CaseList::NONE;
  std::vector<std::string_view> path;
  bool cut = false;
  for (const Suite& suite : suites) {
    if (!suite.named) continue;
    path.push_back(suite.name);
    cut |= suite.cut;
  }
  return list.add(path, className, name, cut);
}

// A result counts for its case however deep in it: a wrapper must not hide it.
Reason ReportBuilder::openResult(Word word, Frame& frame) {
  Case* open = innermostCase();
  if (open == nullptr) {
    frame = {.kind = Kind::ORPHAN, .kept = true};
    if (const Reason refused = openOrphan(); refused != Reason::NONE) return refused;
    open = &cases.back();
  } else if (frame.inOutput) {
    report.findings.add(Finding::RESULT_IN_OUTPUT);
    open->outcome = std::max(open->outcome, CaseOutcome::UNKNOWN);
  } else {
    const CaseOutcome outcome = outcomeOfResult(word);
    open->outcome = std::max(open->outcome, outcome);
    if (isAttempt(word)) ++open->attempts;
    open->saysSkipped |= word == Word::SKIPPED;
    // Attempts may differ from each other; what is said of the case itself may not.
    if (word != Word::RERUN_FAILURE && word != Word::RERUN_ERROR) open->said.set(indexOf(outcome));
    frame = {.kind = Kind::RESULT, .kept = true};
  }
  beginPart(*open);
  for (const Attribute& attribute : attributes) {
    if (attribute.word != Word::MESSAGE || open->listed == CaseList::NONE) continue;
    if (attribute.value.empty()) continue;
    if (std::exchange(open->newPart, false)) list.append(open->listed, "\n");
    list.append(open->listed, attribute.value);
    open->hasText = true;
    beginPart(*open);
  }
  return Reason::NONE;
}

void ReportBuilder::closeCase() {
  const Case open = cases.back();
  cases.pop_back();
  suites.back().count.add(open.outcome, open.saysSkipped);
  if (open.said.count() > 1) report.findings.add(Finding::CONTRADICTORY_RESULTS);

  KeyTable::Merge merge{.first = true, .before = open.outcome, .after = open.outcome};
  if (!open.nameless) merge = keys.merge(open.key, open.outcome);
  if (merge.first) {
    ++report.totals.cases;
  } else {
    --totalOf(merge.before);
  }
  ++totalOf(merge.after);
  if (open.listed != CaseList::NONE) list.close(open.listed, merge.after, open.attempts);
}

std::uint64_t& ReportBuilder::totalOf(CaseOutcome outcome) {
  switch (outcome) {
    case CaseOutcome::PASSED:
      return report.totals.passed;
    case CaseOutcome::SKIPPED:
      return report.totals.skipped;
    case CaseOutcome::FLAKY:
      return report.totals.flaky;
    case CaseOutcome::FAILED:
      return report.totals.failed;
    case CaseOutcome::ERRORED:
      return report.totals.errored;
    case CaseOutcome::UNKNOWN:
      break;
  }
  return report.totals.unknown;
}

// ---- the report ----

JunitReport ReportBuilder::finish() {
  const JunitTotals& totals = report.totals;
  if (totals.cases == 0) report.status = Status::EMPTY;
  report.green = totals.passed > 0 && totals.failed == 0 && totals.errored == 0 &&
                 totals.flaky == 0 && totals.unknown == 0 && !excessClaims;
  report.truncated = list.truncated();
  report.cases = list.release();
  return std::move(report);
}

JunitReport ReportBuilder::abandon(Status status, Reason reason, std::uint64_t offset) {
  report.status = status;
  report.reason = reason;
  report.offset = offset;
  report.truncated = list.truncated();
  return std::move(report);
}

}  // namespace cordon::records
