#include "common/records/verdicts/verdicts-reader.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "common/channel/message.h"
#include "common/records/lines/schema.h"

namespace cordon::records {
namespace {

constexpr std::size_t MAX_PROOF_KIND = 32;

// In the order of VerdictOutcome.
constexpr std::array<std::string_view, 4> OUTCOMES{"pass", "fail", "error", "skip"};

bool isProofKind(std::string_view text) {
  return !text.empty() && text.size() <= MAX_PROOF_KIND &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

}  // namespace

struct VerdictsReader::Table {
  static constexpr Field PROOF[] = {
      {.name = "kind", .text = asText<Line>([](Line& to, std::string& value) {
                         to.record.proof->kind = std::move(value);
                         return isProofKind(to.record.proof->kind);
                       })},
      {.name = "sha256", .text = asText<Line>([](Line& to, std::string& value) {
                           const auto digest = channel::sha256FromHex(value);
                           if (digest) to.record.proof->sha256 = *digest;
                           return digest.has_value();
                         })},
  };
  static constexpr Field LINE[] = {
      {.name = "v", .integer = isVersion},
      {.name = "run", .text = asText<Line>([](Line& to, std::string& value) {
                        const auto id = channel::idFromHex(value);
                        if (id) to.run = id->bytes;
                        return id.has_value();
                      })},
      {.name = "seq", .integer = asInteger<Line>([](Line& to, std::int64_t value) {
                        to.record.seq = static_cast<std::uint64_t>(value);
                        return value >= 1;
                      })},
      {.name = "check", .text = asText<Line>([](Line& to, std::string& value) {
                          to.record.check = std::move(value);
                          return true;
                        })},
      {.name = "goal", .required = false, .text = asText<Line>([](Line& to, std::string& value) {
                                            to.record.goal = std::move(value);
                                            return true;
                                          })},
      {.name = "outcome", .text = asText<Line>([](Line& to, std::string& value) {
                            const auto word = std::ranges::find(OUTCOMES, value);
                            to.record.outcome =
                                static_cast<VerdictOutcome>(word - OUTCOMES.begin());
                            return word != OUTCOMES.end();
                          })},
      {.name = "observed_ms", .integer = asInteger<Line>([](Line& to, std::int64_t value) {
                                to.record.observedMs = value;
                                return true;
                              })},
      {.name = "tier",
       .text = asText<Line>([](Line&, std::string& value) { return value == "T3"; })},
      {.name = "proof", .required = false, .members = PROOF, .open = asObject<Line>([](Line& to) {
                                                               to.record.proof.emplace();
                                                               return true;
                                                             })},
      {.name = "detail",
       .required = false,
       .maxBytes = MAX_DETAIL_BYTES,
       .controls = true,
       .text = asText<Line>([](Line& to, std::string& value) {
         to.record.detail = std::move(value);
         return true;
       })},
  };
};

VerdictsReader::VerdictsReader() : lines(Table::LINE, *this) {}

void* VerdictsReader::beginRecord() {
  line = {};
  return &line;
}

Reason VerdictsReader::endRecord() {
  checkSequence();
  if (report.records == 0) report.run = line.run;
  if (report.run != line.run) report.findings.add(Finding::FOREIGN_RUN);
  ++report.records;
  ++report.outcomes.at(static_cast<std::size_t>(line.record.outcome));
  list();
  return Reason::NONE;
}

void VerdictsReader::checkSequence() {
  const std::uint64_t seq = line.record.seq;
  if (seq <= highest) {
    report.tamper = true;
    report.findings.add(seq == highest ? Finding::SEQUENCE_REPEATED : Finding::SEQUENCE_BACKWARD);
    return;
  }
  if (seq > highest + 1) report.findings.add(Finding::SEQUENCE_GAP);
  highest = seq;
}

void VerdictsReader::list() {
  const auto sizeOf = [](const std::optional<std::string>& text) {
    return text ? text->size() : 0;
  };
  const VerdictRecord& record = line.record;
  const std::size_t bytes = record.check.size() + sizeOf(record.goal) + sizeOf(record.detail) +
                            (record.proof ? record.proof->kind.size() : 0);
  report.truncated = report.truncated || report.list.size() == MAX_LISTED_VERDICTS ||
                     listedBytes + bytes > MAX_LISTED_VERDICT_BYTES;
  if (report.truncated) return;
  listedBytes += bytes;
  report.list.push_back(std::move(line.record));
}

VerdictsReport VerdictsReader::finish() {
  const LinesEnd end = lines.end();
  VerdictsReport result;
  if (end.reason == Reason::NONE) result = std::move(report);
  result.status = end.status;
  result.reason = end.reason;
  result.line = end.line;
  if (end.tornTail) result.findings.add(Finding::TORN_TAIL);
  const auto count = [&](VerdictOutcome outcome) {
    return result.outcomes.at(static_cast<std::size_t>(outcome));
  };
  result.green = result.status == Status::OK && result.findings.empty() && !result.tamper &&
                 count(VerdictOutcome::PASS) > 0 && count(VerdictOutcome::FAIL) == 0 &&
                 count(VerdictOutcome::ERROR) == 0;
  return result;
}

}  // namespace cordon::records
