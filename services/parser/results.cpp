#include "services/parser/results.h"

#include <algorithm>
#include <string>
#include <utility>

#include "services/parser/record-results.h"

namespace cordon::parser {
namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

template <typename Bytes>
capnp::Data::Reader toData(const Bytes& bytes) {
  return capnp::Data::Reader(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size());
}

// Both sides number their enumerators alike; results_test.cpp compares the names.
template <typename To, typename From>
To toProtocol(From value) {
  return static_cast<To>(static_cast<std::uint16_t>(value));
}

void writeFinished(const Finished& finished, protocols::ExecResult::Finished::Builder to) {
  to.setRc(finished.rc);
  to.setStdoutSize(finished.stdoutSize);
  to.setStderrSize(finished.stderrSize);
  to.setStdoutTruncated(finished.stdoutTruncated);
  to.setStderrTruncated(finished.stderrTruncated);
  to.setStdoutSha256(toData(finished.stdoutSha256));
  to.setStderrSha256(toData(finished.stderrSha256));
  to.setDeliveries(finished.deliveries);
}

void writeEntry(const channel::DiagEntry& entry, protocols::DiagResult::Entry::Builder to) {
  to.setTsMs(static_cast<std::uint64_t>(entry.tsMs));
  to.setLevel(toProtocol<protocols::DiagResult::Level>(entry.level));
  to.setEvent(toData(entry.event));
  to.setRequestId(toData(entry.requestId.value_or(std::string())));
  to.setDetail(toData(entry.detail));
}

// Bytes of what a guest says with a failure, where there may be one of each of many sources.
constexpr std::size_t MAX_POLLED_TEXT = 1024;

Failure withShortTexts(Failure failure) {
  const auto cut = [](std::string& text) { text.resize(std::min(text.size(), MAX_POLLED_TEXT)); };
  if (auto* guest = std::get_if<GuestError>(&failure.reason)) cut(guest->message);
  if (auto* budget = std::get_if<BudgetFailure>(&failure.reason)) cut(budget->partial);
  return failure;
}

void writePolled(const SourcePoll& poll, protocols::CoverageResult::Polled::Builder to) {
  to.setAsked(poll.asked);
  to.setAnswered(poll.answered);
  if (poll.lastFailure) writeFailure(withShortTexts(*poll.lastFailure), to.initLastFailure());
  to.setFirstAnswerMs(poll.firstAnswerMs);
  to.setLastNewsMs(poll.lastNewsMs);
  to.setLongestSilenceMs(poll.longestSilenceMs);
  to.setSilent(poll.silent);
}

// Writes a failure, or lets `write` write the good result.
template <typename T, typename Builder, typename Write>
void writeEither(const Outcome<T>& outcome, Builder to, Write write) {
  if (const auto* failure = std::get_if<Failure>(&outcome)) {
    writeFailure(*failure, to.initFailure());
  } else {
    write(std::get<T>(outcome));
  }
}

}  // namespace

void writeFailure(const Failure& failure, protocols::Failure::Builder to) {
  to.setDeliveries(failure.deliveries);
  std::visit(
      Overloaded{
          [&](const Tamper& tamper) {
            auto result = to.initTamper();
            result.setClass(toProtocol<protocols::TamperClass>(tamper.type));
            if (tamper.frame) result.setFrame(toData(*tamper.frame));
          },
          [&](LossClass loss) { to.setLoss(toProtocol<protocols::LossClass>(loss)); },
          [&](const BudgetFailure& budget) {
            auto result = to.initBudget();
            result.setLayer(toProtocol<protocols::BudgetLayer>(budget.layer));
            result.setPartial(toData(budget.partial));
          },
          [&](const GuestError& error) {
            auto result = to.initGuest();
            result.setErrno(error.errnoName.c_str());
            result.setMessage(toData(error.message));
          },
          [&](const FileLimit& limit) { to.setFileLimit(limit.written); },
          [&](const SessionChange& change) {
            auto result = to.initSessionChanged();
            result.setPinned(toData(change.pinned.bytes));
            result.setFound(toData(change.found.bytes));
          },
          [&](ArgumentError error) { to.setArgument(toProtocol<protocols::ArgumentError>(error)); },
          [&](StreamError error) { to.setStream(toProtocol<protocols::StreamError>(error)); },
      },
      failure.reason);
}

void writeResult(const Outcome<Pong>& outcome, protocols::PingResult::Builder to) {
  writeEither(outcome, to, [&](const Pong& pong) {
    auto result = to.initPong();
    result.setDaemon(toData(pong.daemon));
    result.setSession(toData(pong.session.bytes));
  });
}

void writeResult(const Outcome<Finished>& outcome, protocols::ExecResult::Builder to) {
  writeEither(outcome, to,
              [&](const Finished& finished) { writeFinished(finished, to.initFinished()); });
}

void writeResult(const Outcome<Content>& outcome, protocols::ReadResult::Builder to) {
  writeEither(outcome, to, [&](const Content& content) {
    auto result = to.initContent();
    result.setSize(content.size);
    result.setSha256(toData(content.sha256));
    result.setDeliveries(content.deliveries);
  });
}

void writeResult(const Outcome<Written>& outcome, protocols::WriteResult::Builder to) {
  writeEither(outcome, to, [&](const Written& written) {
    auto result = to.initWritten();
    result.setSha256(toData(written.sha256));
    result.setDeliveries(written.deliveries);
  });
}

void writeResult(const Outcome<Polled>& outcome, protocols::PollResult::Builder to) {
  writeEither(outcome, to, [&](const Polled& polled) {
    std::visit(Overloaded{
                   [&](const Running& running) { to.setRunning(running.elapsedMs); },
                   [&](const Finished& finished) { writeFinished(finished, to.initExec()); },
                   [&](const StoredFile& file) { to.setFile(file.size); },
                   [&](const StoredOk&) { to.setOk(); },
               },
               polled);
  });
}

void writeResult(const Outcome<records::JunitReport>& outcome, protocols::JunitResult::Builder to) {
  writeEither(outcome, to,
              [&](const records::JunitReport& report) { writeReport(report, to.initReport()); });
}

void writeResult(const Outcome<records::VerdictsReport>& outcome,
                 protocols::VerdictsResult::Builder to) {
  writeEither(outcome, to,
              [&](const records::VerdictsReport& report) { writeReport(report, to.initReport()); });
}

void writeResult(const CoverageAnswer& answer, protocols::CoverageResult::Builder to) {
  auto report = to.initReport();
  writeReport(answer.coverage, report.initCoverage());
  auto polled = report.initPolled(static_cast<capnp::uint>(answer.polled.size()));
  for (capnp::uint i = 0; i < polled.size(); ++i) writePolled(answer.polled[i], polled[i]);
}

void writeResult(const Outcome<DiagReport>& outcome, protocols::DiagResult::Builder to) {
  writeEither(outcome, to, [&](const DiagReport& report) {
    auto result = to.initReport();
    auto entries = result.initEntries(static_cast<capnp::uint>(report.entries.size()));
    for (capnp::uint i = 0; i < entries.size(); ++i) writeEntry(report.entries[i], entries[i]);
    result.setListenerRestarts(report.listenerRestarts);
  });
}

}  // namespace cordon::parser
