// The time that a round trip may take, with a clock that stands still while the host itself is what
// is waited for.
#pragma once

#include <kj/async.h>
#include <kj/timer.h>

namespace cordon::parser {

class Window {
 public:
  // `allowance` counts from now, less pauses; `bound` is absolute and counts always.
  Window(kj::Timer& timer, kj::Duration allowance, kj::TimePoint bound);
  KJ_DISALLOW_COPY(Window);

  // Resolves once the allowance is used up or the bound has passed. Call once.
  kj::Promise<void> expired();

  // Not nested.
  void pause();
  void resume();
  // Time spent paused, a pause that still lasts included.
  [[nodiscard]] kj::Duration stalled() const;

 private:
  kj::Timer& timer;
  const kj::TimePoint end;
  const kj::TimePoint bound;
  kj::Duration paused = 0 * kj::NANOSECONDS;
  kj::Maybe<kj::TimePoint> pausedAt;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> onResume;
};

}  // namespace cordon::parser
