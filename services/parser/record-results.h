// From what the readers of common/records make of a file to protocols/records.capnp, one to one.
#pragma once

#include <optional>

#include <kj/async.h>

#include "common/records/coverage/coverage.h"
#include "common/records/junit/junit.h"
#include "common/records/verdicts/verdicts.h"
#include "protocols/records.capnp.h"

namespace cordon::parser {

// Of the libraries that are loaded here.
void writeReaderFacts(protocols::ReaderFacts::Builder to);

void writeReport(const records::JunitReport& report, protocols::JunitReport::Builder to);
void writeReport(const records::VerdictsReport& report, protocols::VerdictsReport::Builder to);
void writeReport(const records::CoverageReport& report, protocols::CoverageReport::Builder to);

// Nothing where the window is empty, inverted or of a kind unknown here. `whole` is no window.
struct AskedWindow {
  std::optional<records::Window> bounds;
};
std::optional<AskedWindow> readWindow(protocols::CoverageWindow::Reader window);

// Write the list of a report whose status is OK, in pieces within the bounds of the sink, and end
// it. `report` outlives the promise, which is rejected where the sink fails. Of a report with
// another status there is nothing to write: neither a piece nor an end.
kj::Promise<void> writeList(const records::JunitReport& report, protocols::CaseSink::Client sink);
kj::Promise<void> writeList(const records::VerdictsReport& report,
                            protocols::VerdictSink::Client sink);

}  // namespace cordon::parser
