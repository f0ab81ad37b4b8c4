#include "services/parser/guest-records.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <variant>

#include "common/records/junit/reader.h"
#include "common/records/verdicts/verdicts-reader.h"
#include "services/parser/bulk.h"
#include "services/parser/record-results.h"

namespace cordon::parser {
namespace {

// Bytes that are read between two looks at everybody else.
constexpr std::size_t PIECE = 65536;

template <typename Reader>
class ReaderSink final : public BulkSink {
 public:
  kj::Promise<void> write(kj::ArrayPtr<const kj::byte> bytes) override {
    const auto piece = bytes.slice(0, std::min(bytes.size(), PIECE));
    const auto rest = bytes.slice(piece.size(), bytes.size());
    // What no longer matters is still received: only a reply that was read whole is verified.
    reader.feed(std::as_bytes(std::span(piece.begin(), piece.size())));
    if (rest.size() == 0) return kj::READY_NOW;
    return kj::evalLater([this, rest]() { return write(rest); });
  }
  kj::Promise<void> end() override { return kj::READY_NOW; }

  Reader reader;
};

// A file that goes on beyond what may be read. Its first violation still decides.
template <typename Report>
void refuseTheRest(Report& report) {
  if (report.status == records::Status::UNPARSABLE || report.status == records::Status::REFUSED)
    return;
  report = {};
  report.status = records::Status::REFUSED;
  report.reason = records::Reason::TOO_MANY_BYTES;
}

// What `outcome` comes to for a reader that was fed by it.
template <typename Report, typename Reader>
Outcome<Report> conclude(const Outcome<Content>& outcome, Reader& reader) {
  if (const auto* failure = std::get_if<Failure>(&outcome)) {
    if (isMissingFile(*failure)) {
      Report report;
      report.status = records::Status::MISSING;
      return report;
    }
    if (!std::holds_alternative<FileLimit>(failure->reason)) return *failure;
    Report report = reader.finish();
    refuseTheRest(report);
    return report;
  }
  return reader.finish();
}

std::uint32_t deliveriesOf(const Outcome<Content>& outcome) {
  const auto* failure = std::get_if<Failure>(&outcome);
  return failure == nullptr ? std::get<Content>(outcome).deliveries : failure->deliveries;
}

template <typename Reader, typename Sink>
auto readRecords(GuestClient& client, channel::Id id, channel::ReadFile file, Sink sink) {
  using Report = decltype(std::declval<Reader>().finish());
  // One byte more, so that the reader itself sees that there are too many.
  file.maxBytes = static_cast<std::int64_t>(MAX_RECORD_FILE + 1);
  auto input = kj::heap<ReaderSink<Reader>>();
  auto reading = client.readFile(id, std::move(file), *input);
  return reading.then([input = kj::mv(input), sink = kj::mv(sink)](
                          Outcome<Content>&& outcome) mutable -> kj::Promise<Outcome<Report>> {
    auto concluded = kj::heap<Outcome<Report>>(conclude<Report>(outcome, input->reader));
    input = nullptr;
    const auto* report = std::get_if<Report>(concluded.get());
    if (report == nullptr) return kj::mv(*concluded);
    auto written = writeList(*report, kj::mv(sink));
    return written.then(
        [concluded = kj::mv(concluded)]() mutable { return kj::mv(*concluded); },
        [deliveries = deliveriesOf(outcome)](kj::Exception&&) {
          return Outcome<Report>(Failure{.deliveries = deliveries, .reason = StreamError::FAILED});
        });
  });
}

}  // namespace

kj::Promise<Outcome<records::JunitReport>> readJunit(GuestClient& client, channel::Id id,
                                                     channel::ReadFile file,
                                                     protocols::CaseSink::Client sink) {
  return readRecords<records::JunitReader>(client, id, std::move(file), kj::mv(sink));
}

kj::Promise<Outcome<records::VerdictsReport>> readVerdicts(GuestClient& client, channel::Id id,
                                                           channel::ReadFile file,
                                                           protocols::VerdictSink::Client sink) {
  return readRecords<records::VerdictsReader>(client, id, std::move(file), kj::mv(sink));
}

bool isMissingFile(const Failure& failure) {
  const auto* error = std::get_if<GuestError>(&failure.reason);
  return error != nullptr && (error->errnoName == "ENOENT" || error->errnoName == "ENOTDIR");
}

}  // namespace cordon::parser
