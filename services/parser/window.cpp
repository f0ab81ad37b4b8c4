#include "services/parser/window.h"

#include <kj/debug.h>

namespace cordon::parser {

Window::Window(kj::Timer& clock, kj::Duration allowance, kj::TimePoint limit)
    : timer(clock), end(clock.now() + allowance), bound(limit) {}

kj::Promise<void> Window::expired() {
  if (timer.now() >= bound) return kj::READY_NOW;
  if (pausedAt != nullptr) {
    auto resumed = kj::newPromiseAndFulfiller<void>();
    onResume = kj::mv(resumed.fulfiller);
    return timer.atTime(bound).exclusiveJoin(kj::mv(resumed.promise)).then([this]() {
      return expired();
    });
  }
  const kj::TimePoint target = kj::min(end + paused, bound);
  if (timer.now() >= target) return kj::READY_NOW;
  // A pause since then moves the target: look again.
  return timer.atTime(target).then([this]() { return expired(); });
}

void Window::pause() {
  KJ_REQUIRE(pausedAt == nullptr);
  pausedAt = timer.now();
}

void Window::resume() {
  KJ_IF_MAYBE (since, pausedAt) paused += timer.now() - *since;
  pausedAt = nullptr;
  KJ_IF_MAYBE (fulfiller, onResume) (*fulfiller)->fulfill();
  onResume = nullptr;
}

kj::Duration Window::stalled() const {
  KJ_IF_MAYBE (since, pausedAt) return paused + (timer.now() - *since);
  return paused;
}

}  // namespace cordon::parser
