// Threads that serve connections: as many as are active at once, up to a bound; the rest wait in
// order.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <pthread.h>

#include "services/guest/diag-ring.h"
#include "services/guest/fd.h"

namespace cordon::guest {

inline constexpr std::size_t MAX_ACTIVE_CONNECTIONS = 512;

class Workers {
 public:
  // Serves one connection to its end. False: the thread must not serve another (its identity may be
  // spoiled).
  using Serve = std::function<bool(Fd)>;

  // Starts a few threads that stay, so that a guest out of processes can still be polled. Throws
  // std::system_error if not even these can start.
  Workers(DiagRing& ring, Serve server);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Never blocks: accepting must go on while every thread is busy.
  void submit(Fd connection);

 private:
  static void* threadMain(void* self);
  static void* replacerMain(void* self);
  void run();
  // A thread is born with the identity of the one that makes it, so that a retired thread must not
  // make its own successor. This one serves nothing, and makes them all.
  void replace();
  bool serveOne(Fd connection);
  int start();                        // with the lock held; 0 or an errno
  [[nodiscard]] bool tooFew() const;  // with the lock held

  DiagRing& diag;
  Serve serve;
  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable wakeReplacer;
  std::deque<Fd> waiting;
  std::size_t threads = 0;
  std::size_t idle = 0;
  std::size_t retired = 0;  // threads for which the replacer has not looked yet
};

}  // namespace cordon::guest
