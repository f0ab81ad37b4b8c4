// An event loop whose time only passes when nothing else can happen: hours of a test's protocol
// take milliseconds.
#pragma once

#include <kj/async.h>
#include <kj/debug.h>
#include <kj/timer.h>

namespace cordon::tests {

class VirtualWorld {
 public:
  VirtualWorld() : scope(threadScope()), clock(kj::origin<kj::TimePoint>()) {}
  KJ_DISALLOW_COPY(VirtualWorld);

  // Runs until the promise is resolved. Throws where it never will be: no event and no timer is
  // left.
  template <typename T>
  T run(kj::Promise<T> promise) {
    while (!promise.poll(scope)) {
      KJ_IF_MAYBE (next, clock.nextEvent()) {
        clock.advanceTo(*next);
      } else {
        kj::throwFatalException(KJ_EXCEPTION(FAILED, "nothing is left that could happen"));
      }
    }
    return promise.wait(scope);
  }
  // All that can happen without time passing.
  void settle() { scope.poll(); }
  void pass(kj::Duration time) {
    const kj::TimePoint until = clock.now() + time;
    for (;;) {
      settle();
      KJ_IF_MAYBE (next, clock.nextEvent()) {
        if (*next <= until) {
          clock.advanceTo(*next);
          continue;
        }
      }
      break;
    }
    clock.advanceTo(until);
    settle();
  }
  kj::Timer& timer() { return clock; }
  [[nodiscard]] kj::Duration elapsed() const { return clock.now() - kj::origin<kj::TimePoint>(); }

  kj::WaitScope& scope;

 private:
  // KJ allows a thread one loop: worlds of one test share it, each with a time of its own.
  static kj::WaitScope& threadScope() {
    struct ThreadLoop {
      kj::EventLoop loop;
      kj::WaitScope scope{loop};
    };
    static thread_local ThreadLoop shared;
    return shared.scope;
  }

  kj::TimerImpl clock;
};

}  // namespace cordon::tests
