// Where what the parser says becomes ours. It has read bytes of an attacker's choosing and is
// presumed lost, so every value is held against its contract (protocols/records.capnp): known codes
// only, texts in UTF-8 and within their bounds, lists within theirs, totals that add up, nothing
// green that its own figures contradict.
#pragma once

#include <cstddef>
#include <optional>
#include <variant>
#include <vector>

#include "common/records/coverage/coverage.h"
#include "common/records/junit/junit.h"
#include "common/records/verdicts/verdicts.h"
#include "protocols/records.capnp.h"

namespace cordon::cli {

// A value that no honest parser sends: what, for people.
struct Breach {
  const char* what = "";
};

// The two lists that come in pieces, before the report they belong to.
class CaseIntake {
 public:
  // One piece.
  std::optional<Breach> take(capnp::List<protocols::JunitCase>::Reader piece);
  std::optional<Breach> end();

 private:
  friend std::variant<records::JunitReport, Breach> takeJunit(protocols::JunitReport::Reader,
                                                              CaseIntake);
  std::vector<records::JunitCase> cases;
  std::size_t bytes = 0;
  bool isEnded = false;
};

class VerdictIntake {
 public:
  std::optional<Breach> take(capnp::List<protocols::VerdictRecord>::Reader piece);
  std::optional<Breach> end();

 private:
  friend std::variant<records::VerdictsReport, Breach> takeVerdicts(
      protocols::VerdictsReport::Reader, VerdictIntake);
  std::vector<records::VerdictRecord> list;
  std::size_t bytes = 0;
  bool isEnded = false;
};

// Lists of a report whose status is not OK are thrown away.
std::variant<records::JunitReport, Breach> takeJunit(protocols::JunitReport::Reader report,
                                                     CaseIntake cases);
std::variant<records::VerdictsReport, Breach> takeVerdicts(protocols::VerdictsReport::Reader report,
                                                           VerdictIntake verdicts);
std::variant<records::CoverageReport, Breach> takeCoverage(
    protocols::CoverageReport::Reader report);

}  // namespace cordon::cli
