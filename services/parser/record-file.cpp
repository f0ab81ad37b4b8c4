#include "services/parser/record-file.h"

#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include <kj/common.h>

#include "common/ipc/error.h"
#include "common/records/coverage/coverage-reader.h"
#include "common/records/junit/reader.h"
#include "common/records/verdicts/verdicts-reader.h"
#include "services/parser/record-results.h"

namespace cordon::parser {
namespace {

// What is said of a file that gives an error instead of its bytes.
template <typename Report>
Report notReadable() {
  Report report;
  report.status = records::Status::REFUSED;
  report.reason = records::Reason::NOT_READABLE;
  return report;
}

}  // namespace

RecordFileServer::RecordFileServer(InputFile file) : input(std::move(file)) {}

bool RecordFileServer::begin() {
  return !std::exchange(begun, true);
}

template <typename Reader>
kj::Promise<bool> RecordFileServer::feedAll(Reader& reader) {
  const std::optional<std::size_t> size = input.read(piece);
  if (!size) return false;
  if (*size == 0) return true;
  if (!reader.feed(std::span(piece).first(*size))) return true;
  return kj::evalLater([this, &reader]() { return feedAll(reader); });
}

template <typename Reader, typename Context, typename Sink>
kj::Promise<void> RecordFileServer::readListed(Context context, Sink sink) {
  using Report = decltype(std::declval<Reader>().finish());
  context.allowCancellation();
  if (!begin()) return ipc::makeException(ipc::ErrorCode::BAD_ARGUMENT);
  auto reader = kj::heap<Reader>();
  auto fed = feedAll(*reader);
  return fed.then([context, sink = kj::mv(sink), reader = kj::mv(reader)](bool isRead) mutable {
    auto report = kj::heap<Report>(isRead ? reader->finish() : notReadable<Report>());
    reader = nullptr;
    auto written = writeList(*report, kj::mv(sink));
    return written.then([context, report = kj::mv(report)]() mutable {
      writeReport(*report, context.getResults().initReport());
    });
  });
}

kj::Promise<void> RecordFileServer::describe(DescribeContext context) {
  writeReaderFacts(context.getResults().initFacts());
  return kj::READY_NOW;
}

kj::Promise<void> RecordFileServer::readJunit(ReadJunitContext context) {
  auto sink = context.getParams().getCases();
  return readListed<records::JunitReader>(context, kj::mv(sink));
}

kj::Promise<void> RecordFileServer::readVerdicts(ReadVerdictsContext context) {
  auto sink = context.getParams().getVerdicts();
  return readListed<records::VerdictsReader>(context, kj::mv(sink));
}

kj::Promise<void> RecordFileServer::readCoverage(ReadCoverageContext context) {
  context.allowCancellation();
  const auto window = readWindow(context.getParams().getWindow());
  if (!window || !begin()) return ipc::makeException(ipc::ErrorCode::BAD_ARGUMENT);
  auto reader = kj::heap<records::CoverageReader>();
  auto fed = feedAll(*reader);
  return fed.then([context, asked = window->bounds, reader = kj::mv(reader)](bool isRead) mutable {
    auto report = isRead ? reader->finish(asked) : notReadable<records::CoverageReport>();
    if (!isRead) report.answer = records::Coverage::CONTRADICTORY;
    writeReport(report, context.getResults().initReport());
  });
}

}  // namespace cordon::parser
