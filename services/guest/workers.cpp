#include "services/guest/workers.h"

#include <chrono>
#include <exception>
#include <system_error>

#include "services/guest/reply.h"

namespace cordon::guest {
namespace {

constexpr std::size_t STANDING_THREADS = 4;
constexpr auto IDLE_LIFE = std::chrono::seconds(10);
#ifdef CORDON_SANITIZED
constexpr std::size_t STACK_SIZE = 2u << 20;
#else
constexpr std::size_t STACK_SIZE = 256u << 10;
#endif

int startThread(void* (*main)(void*), void* argument) {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, STACK_SIZE);
  pthread_t thread{};
  const int error = ::pthread_create(&thread, &attributes, main, argument);
  ::pthread_attr_destroy(&attributes);
  return error;
}

}  // namespace

Workers::Workers(DiagRing& ring, Serve server) : diag(ring), serve(std::move(server)) {
  std::lock_guard lock(mutex);
  if (int error = startThread(replacerMain, this); error != 0)
    throw std::system_error(error, std::generic_category());
  while (threads < STANDING_THREADS) {
    if (int error = start(); error != 0) throw std::system_error(error, std::generic_category());
  }
}

int Workers::start() {
  const int error = startThread(threadMain, this);
  if (error == 0) ++threads;
  return error;
}

void Workers::submit(Fd connection) {
  int error = 0;
  {
    std::lock_guard lock(mutex);
    waiting.push_back(std::move(connection));
    if (waiting.size() > idle && threads < MAX_ACTIVE_CONNECTIONS) error = start();
    wake.notify_one();
  }
  if (error != 0)
    diag.warn("thread-failed", errnoText("a connection waits for another's thread", error));
}

void* Workers::threadMain(void* self) {
  static_cast<Workers*>(self)->run();
  return nullptr;
}

void Workers::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    while (waiting.empty()) {
      ++idle;
      bool timedOut = wake.wait_for(lock, IDLE_LIFE) == std::cv_status::timeout;
      --idle;
      if (timedOut && waiting.empty() && threads > STANDING_THREADS) {
        --threads;
        return;
      }
    }
    Fd connection = std::move(waiting.front());
    waiting.pop_front();
    lock.unlock();
    bool usable = serveOne(std::move(connection));
    lock.lock();
    if (usable) continue;
    --threads;
    ++retired;
    wakeReplacer.notify_one();
    return;
  }
}

bool Workers::tooFew() const {
  return threads < STANDING_THREADS || (waiting.size() > idle && threads < MAX_ACTIVE_CONNECTIONS);
}

void Workers::replace() {
  std::unique_lock lock(mutex);
  for (;;) {
    while (retired == 0) wakeReplacer.wait(lock);
    --retired;
    // A failure leaves what waits to the other threads, and to the next submit().
    if (tooFew()) (void)start();
  }
}

void* Workers::replacerMain(void* self) {
  static_cast<Workers*>(self)->replace();
  return nullptr;
}

bool Workers::serveOne(Fd connection) {
  try {
    return serve(std::move(connection));
  } catch (const std::exception& exception) {
    diag.error("connection-crashed", exception.what());
  }
  return false;
}

}  // namespace cordon::guest
