#include "services/cli/read/intake-values.h"

#include "common/log/visible.h"

namespace cordon::cli {

using records::Finding;
using records::Reason;
using records::Status;

static_assert(static_cast<int>(protocols::RecordStatus::REFUSED) ==
              static_cast<int>(Status::REFUSED));
static_assert(static_cast<int>(protocols::RecordReason::READER_LOST) ==
              static_cast<int>(Reason::READER_LOST));
static_assert(static_cast<int>(protocols::RecordFinding::AHEAD_OF_HOST) ==
              static_cast<int>(Finding::AHEAD_OF_HOST));

std::optional<std::string> textFrom(capnp::Data::Reader data, std::size_t most) {
  const std::string_view text = viewOf(data);
  if (text.size() > most || !log::isUtf8(text)) return std::nullopt;
  return std::string(text);
}

std::optional<Judgement> judgementFrom(protocols::RecordStatus statusCode,
                                       protocols::RecordReason reasonCode) {
  const auto status = codeFrom(statusCode, Status::REFUSED);
  const auto reason = codeFrom(reasonCode, Reason::TOO_MANY_SOURCES);
  if (!status || !reason || *status == Status::MISSING) return std::nullopt;
  const bool isUnread = *status == Status::UNPARSABLE || *status == Status::REFUSED;
  if (isUnread != (*reason != Reason::NONE)) return std::nullopt;
  return Judgement{*status, *reason};
}

namespace {

bool belongsTo(Finding finding, Format format) {
  switch (format) {
    case Format::JUNIT:
      return finding <= Finding::UNKNOWN_STATUS;
    case Format::VERDICTS:
      return finding >= Finding::TORN_TAIL && finding <= Finding::FOREIGN_RUN;
    case Format::COVERAGE:
      return finding == Finding::TORN_TAIL || finding == Finding::SEQUENCE_REPEATED ||
             finding == Finding::SEQUENCE_BACKWARD ||
             (finding >= Finding::HOLE && finding <= Finding::CLOCK_STEP);
  }
  return false;
}

}  // namespace

std::optional<Finding> findingFrom(protocols::RecordFinding code, Format format) {
  const auto finding = codeFrom(code, Finding::AHEAD_OF_HOST);
  if (!finding || !belongsTo(*finding, format)) return std::nullopt;
  return finding;
}

std::optional<records::Findings> findingsFrom(capnp::List<protocols::RecordFinding>::Reader list,
                                              Format format) {
  if (list.size() > records::FINDING_COUNT) return std::nullopt;
  records::Findings findings;
  for (const auto code : list) {
    const auto finding = findingFrom(code, format);
    if (!finding || findings.has(*finding)) return std::nullopt;
    findings.add(*finding);
  }
  return findings;
}

}  // namespace cordon::cli
