#include "services/vsock/poller.h"

#include <algorithm>

namespace cordon::vsock {
namespace {

epoll_event eventOf(Watch watch, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = (static_cast<std::uint64_t>(watch.kind) << 32) | watch.number;
  return event;
}

}  // namespace

Poller::Poller() : fd(::epoll_create1(EPOLL_CLOEXEC)) {}

bool Poller::add(int watched, Watch watch, std::uint32_t wanted) {
  epoll_event event = eventOf(watch, wanted);
  return ::epoll_ctl(fd.get(), EPOLL_CTL_ADD, watched, &event) == 0;
}

bool Poller::change(int watched, Watch watch, std::uint32_t wanted) {
  epoll_event event = eventOf(watch, wanted);
  return ::epoll_ctl(fd.get(), EPOLL_CTL_MOD, watched, &event) == 0;
}

void Poller::remove(int watched) {
  ::epoll_ctl(fd.get(), EPOLL_CTL_DEL, watched, nullptr);
}

std::span<const epoll_event> Poller::wait(std::chrono::milliseconds timeout) {
  const int milliseconds = static_cast<int>(std::clamp<std::int64_t>(timeout.count(), -1, 60'000));
  const int count =
      ::epoll_wait(fd.get(), events, static_cast<int>(std::size(events)), milliseconds);
  return {events, static_cast<std::size_t>(std::max(count, 0))};
}

}  // namespace cordon::vsock
