// What a lost parser may answer, through the intake and both views. The input is a program: it says
// which honest answer to begin with and which of its words to change, so that most mutations reach
// behind Cap'n Proto's own checks.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>
#include <nlohmann/json.hpp>

#include "common/ipc/limits.h"
#include "common/log/visible.h"
#include "services/cli/read/human-view.h"
#include "services/cli/read/intake.h"
#include "services/cli/read/json-view.h"

namespace {

using namespace cordon;
using records::Status;

void require(bool holds) {
  if (!holds) std::abort();
}

capnp::Data::Reader dataOf(std::string_view text) {
  return {reinterpret_cast<const kj::byte*>(text.data()), text.size()};
}

// The words of an honest message, changed as the program says: (index, byte in the word, new byte).
class Changed {
 public:
  Changed(capnp::MessageBuilder& honest, std::span<const std::uint8_t>& program)
      : words(capnp::messageToFlatArray(honest)) {
    const std::size_t count = program.empty() ? 0 : std::min<std::size_t>(program[0], 32);
    if (!program.empty()) program = program.subspan(1);
    auto bytes = words.asBytes();
    for (std::size_t i = 0; i < count && program.size() >= 3; ++i) {
      const std::size_t at = (program[0] * 256U + program[1]) % bytes.size();
      // The table of segments is checked before, by RpcPeer.
      if (at >= sizeof(capnp::word)) bytes[at] = program[2];
      program = program.subspan(3);
    }
    capnp::ReaderOptions options;
    const ipc::PeerLimits limits;
    options.traversalLimitInWords = limits.messageBytes / sizeof(capnp::word);
    options.nestingLimit = limits.nesting;
    reader.emplace(words.asPtr(), options);
  }

  template <typename T>
  typename T::Reader root() {
    return reader->getRoot<T>();
  }

 private:
  kj::Array<capnp::word> words;
  std::optional<capnp::FlatArrayMessageReader> reader;
};

void checkViews(const std::string& json, const std::string& text) {
  require(json.ends_with('\n'));
  for (const char c : json.substr(0, json.size() - 1)) require(c >= 0x20 && c < 0x7f);
  const auto object = nlohmann::json::parse(json);
  require(object.is_object());
  require(log::isUtf8(text));
  for (const char c : text) require(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
}

void checkText(const std::string& text) {
  require(log::isUtf8(text) && text.size() <= 65536);
}

void fuzzJunit(std::span<const std::uint8_t> program) {
  cli::CaseIntake intake;
  const unsigned count = program.empty() ? 1 : 1 + program[0] % 4;
  {
    capnp::MallocMessageBuilder honest;
    auto cases = honest.initRoot<protocols::CaseSink::WriteParams>().initCases(count);
    for (auto one : cases) {
      one.initSuite(2).set(1, dataOf("suite"));
      one.setClassName(dataOf("class"));
      one.setName(dataOf("na\xc3\xafve"));
      one.setAttempts(1);
      one.setText(dataOf("text"));
    }
    Changed piece(honest, program);
    if (!intake.take(piece.root<protocols::CaseSink::WriteParams>().getCases())) {
      require(!intake.end());
    }
  }
  capnp::MallocMessageBuilder honest;
  auto report = honest.initRoot<protocols::JunitReport>();
  report.setCases(count);
  report.setPassed(count);
  report.setListed(count);
  report.setGreen(true);
  report.initFindings(1).set(0, protocols::RecordFinding::REPEATED_CASE);
  Changed answer(honest, program);
  const auto taken = cli::takeJunit(answer.root<protocols::JunitReport>(), std::move(intake));
  const auto* result = std::get_if<records::JunitReport>(&taken);
  if (result == nullptr) return;
  const auto& totals = result->totals;
  require(totals.passed + totals.failed + totals.errored + totals.skipped + totals.flaky +
              totals.unknown ==
          totals.cases);
  if (result->green) {
    require(result->status == Status::OK && totals.passed > 0);
    require(totals.passed + totals.skipped == totals.cases);
  }
  require(result->cases.size() <= totals.cases);
  require(result->status == Status::OK || result->cases.empty());
  for (const auto& one : result->cases) {
    checkText(one.name);
    checkText(one.className);
    checkText(one.text);
    require(one.attempts > 0);
    if (result->green) require(one.outcome <= records::CaseOutcome::SKIPPED);
  }
  checkViews(cli::toJson(*result), cli::toText("file", *result, {}));
}

void fuzzVerdicts(std::span<const std::uint8_t> program) {
  const std::string bytes(32, 'x');
  cli::VerdictIntake intake;
  {
    capnp::MallocMessageBuilder honest;
    auto record = honest.initRoot<protocols::VerdictSink::WriteParams>().initRecords(1)[0];
    record.setSeq(1);
    record.setCheck(dataOf("check"));
    record.setHasGoal(true);
    record.setGoal(dataOf("goal"));
    record.setProofKind(dataOf("file"));
    record.setProofSha256(dataOf(bytes));
    record.setHasDetail(true);
    record.setDetail(dataOf("de\ttail"));
    Changed piece(honest, program);
    if (!intake.take(piece.root<protocols::VerdictSink::WriteParams>().getRecords())) {
      require(!intake.end());
    }
  }
  capnp::MallocMessageBuilder honest;
  auto report = honest.initRoot<protocols::VerdictsReport>();
  report.setRun(dataOf(bytes.substr(0, 16)));
  report.setRecords(1);
  report.setPassed(1);
  report.setListed(1);
  report.setGreen(true);
  Changed answer(honest, program);
  const auto taken = cli::takeVerdicts(answer.root<protocols::VerdictsReport>(), std::move(intake));
  const auto* result = std::get_if<records::VerdictsReport>(&taken);
  if (result == nullptr) return;
  const auto& outcomes = result->outcomes;
  require(outcomes[0] + outcomes[1] + outcomes[2] + outcomes[3] == result->records);
  if (result->green) {
    require(result->status == Status::OK && outcomes[0] > 0 && !result->tamper);
    require(outcomes[0] + outcomes[3] == result->records && result->findings.empty());
  }
  for (const auto& one : result->list) {
    checkText(one.check);
    require(one.seq > 0);
  }
  checkViews(cli::toJson(*result), cli::toText("file", *result, {}));
}

void fuzzCoverage(std::span<const std::uint8_t> program) {
  capnp::MallocMessageBuilder honest;
  auto report = honest.initRoot<protocols::CoverageReport>();
  const bool isComplete = !program.empty() && program[0] % 2 == 0;
  auto sources = report.initSources(2);
  sources[0].setSource(dataOf("edr"));
  sources[1].setSource(dataOf("dns"));
  if (!isComplete) {
    report.setAnswer(protocols::CoverageAnswer::INCOMPLETE);
    sources[1].setAnswer(protocols::CoverageAnswer::INCOMPLETE);
    auto gap = sources[1].initGaps(1)[0];
    gap.setToMs(5);
    gap.setWhy(protocols::RecordFinding::HOLE);
  }
  Changed answer(honest, program);
  const auto taken = cli::takeCoverage(answer.root<protocols::CoverageReport>());
  const auto* result = std::get_if<records::CoverageReport>(&taken);
  if (result == nullptr) return;
  std::size_t gaps = 0;
  for (const auto& source : result->sources) {
    checkText(source.source);
    require(source.answer <= result->answer);
    require(source.answer != records::Coverage::COMPLETE || source.gaps.empty());
    gaps += source.gaps.size();
  }
  require(gaps <= protocols::MAX_GAPS);
  if (result->answer == records::Coverage::COMPLETE) {
    require(result->status == Status::OK && !result->sources.empty());
  }
  checkViews(cli::toJson(*result), cli::toText("file", *result, {}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::span<const std::uint8_t> program(bytes, size);
  if (program.empty()) return 0;
  const std::uint8_t kind = program[0] % 3;
  program = program.subspan(1);
  // What Cap'n Proto refuses to read is the connection's end.
  const auto malformed = kj::runCatchingExceptions([&]() {
    if (kind == 0) fuzzJunit(program);
    if (kind == 1) fuzzVerdicts(program);
    if (kind == 2) fuzzCoverage(program);
  });
  static_cast<void>(malformed);
  return 0;
}
