// Reads one JUnit XML report of the family that Ant, Surefire, pytest, GoogleTest, CTest and others
// write: tolerant in shape, strict in bytes and resources. Streaming, no DOM, over expat.
//
// What a document means here:
// - a case without a result element has passed only if all that its status attributes say is in the
//   known pass set; of contradictory statements, and of elements of one key, the worst holds
//   (errored, failed, unknown, flaky, skipped, passed);
// - counts are computed. What suites claim is compared with them and decides nothing, but that a
//   claim of more failures or errors than there are takes the green away;
// - green: ok, at least one case passed, none failed, errored, flaky or unknown, no such claim;
// - empty, missing, unparsable and refused are never green;
// - nothing that a report names is opened, and times are not read.
// The first violation in byte order decides between UNPARSABLE and REFUSED, and the report does not
// depend on how the bytes are cut into feeds.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "common/records/junit/junit.h"
#include "common/records/junit/limits.h"

namespace cordon::records {

// Processor time of the calling thread.
std::chrono::nanoseconds threadProcessorTime();

class JunitReader {
 public:
  using Clock = std::function<std::chrono::nanoseconds()>;

  explicit JunitReader(const JunitLimits& limits = {}, Clock clock = threadProcessorTime);
  ~JunitReader();
  JunitReader(const JunitReader&) = delete;
  JunitReader& operator=(const JunitReader&) = delete;

  // The next bytes of the document. False once no further byte can change the report; bytes given
  // nevertheless are ignored.
  bool feed(std::span<const std::byte> bytes);

  // The document ends here. Once.
  JunitReport finish();

  // The most that was held at once of JunitLimits::memory.
  [[nodiscard]] std::size_t peakMemory() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl;
};

// The expat that is loaded, asked at run time: Debian's security updates do not change its version.
struct ExpatFacts {
  std::string version;             // e.g. "expat_2.5.0"
  bool allocationTracker = false;  // whether it bounds its own amplification
};
ExpatFacts expatFacts();

}  // namespace cordon::records
