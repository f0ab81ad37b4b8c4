// A second reading of the rules of coverage, for tests: no interval is ever joined or kept, each
// millisecond and each record is asked by itself. Slow, and only for short windows of one source.
#pragma once

#include <optional>
#include <span>

#include "common/records/coverage/coverage.h"

namespace cordon::records::testing {

struct BruteForceAnswer {
  Coverage answer = Coverage::COMPLETE;
  Findings findings;
  SourceCoverage source;
};

BruteForceAnswer judgeByMillisecond(std::span<const Watermark> records,
                                    const std::optional<Window>& asked);

}  // namespace cordon::records::testing
