#include "services/vsock/server.h"

#include <chrono>

namespace cordon::vsock {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds TICK = 250ms;  // the grain of every deadline
constexpr std::chrono::milliseconds REPORT = 60s;

}  // namespace

Server::Server(const ServerOptions& given, BoundedLog& theLog)
    : options(given),
      log(theLog),
      device(given.cid, given.limits),
      frontEnd(given.vhostUser, given.cid, device, poller, log),
      hybrid(given.listener, given.limits.connections, device, poller) {}

bool Server::watch() {
  return poller && poller.add(options.signals, {WatchKind::SIGNALS}, EPOLLIN) &&
         poller.add(options.vhostUser, {WatchKind::FRONT_END}, EPOLLIN) &&
         poller.add(options.listener, {WatchKind::LISTENER}, EPOLLIN | EPOLLET);
}

int Server::run() {
  TimePoint nextTick = std::chrono::steady_clock::now() + TICK;
  TimePoint nextReport = std::chrono::steady_clock::now() + REPORT;
  bool more = false;
  Turn turn = Turn::GOES_ON;
  while (turn == Turn::GOES_ON) {
    const bool timed = device.connectionCount() > 0 || hybrid.hasHandshakes() ||
                       hybrid.wantsTurn() || device.counters != logged;
    const auto timeout = more ? 0ms : timed ? TICK : -1ms;
    const auto events = poller.wait(timeout);
    const TimePoint now = std::chrono::steady_clock::now();
    for (const epoll_event& event : events) {
      turn = dispatch(event, now);
      if (turn != Turn::GOES_ON) break;
    }
    if (turn != Turn::GOES_ON) break;
    if (now >= nextTick) {
      nextTick = now + TICK;
      device.tick(now);
      hybrid.tick(now);
    }
    more = device.pump(now);
    frontEnd.sendInterrupts();
    if (const auto fault = device.takeFault()) {
      log.line(log::Level::WARN, "device.stopped",
               {{"ring", fault->queue}, {"reason", vsock::name(fault->reason)}});
    }
    if (now >= nextReport) {
      nextReport = now + REPORT;
      if (device.counters != logged) logCounters("counters.changed");
    }
  }
  logCounters("service.ended");
  return turn == Turn::STOP ? 0 : 1;
}

Server::Turn Server::dispatch(const epoll_event& event, TimePoint now) {
  const Watch watch = Poller::watchOf(event);
  switch (watch.kind) {
    case WatchKind::SIGNALS:
      log.always(log::Level::INFO, "service.signalled");
      return Turn::STOP;
    case WatchKind::FRONT_END:
      return endOf(frontEnd.onReadable());
    case WatchKind::KICK:
      frontEnd.onKick(watch.number);
      break;
    case WatchKind::LISTENER:
      hybrid.onAcceptable(now);
      break;
    case WatchKind::HANDSHAKE:
      hybrid.onHandshake(watch.number, now);
      break;
    case WatchKind::STREAM:
      device.hostEvent(
          watch.number, (event.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0,
          (event.events & EPOLLOUT) != 0, (event.events & (EPOLLHUP | EPOLLERR)) != 0, now);
      break;
  }
  return Turn::GOES_ON;
}

Server::Turn Server::endOf(FrontEnd::Outcome outcome) {
  switch (outcome) {
    case FrontEnd::Outcome::GOES_ON:
      return Turn::GOES_ON;
    case FrontEnd::Outcome::GONE:
      log.always(log::Level::INFO, "frontend.gone");
      return Turn::STOP;
    case FrontEnd::Outcome::FAULT:
      break;
  }
  log.always(log::Level::ERROR, "frontend.refused",
             {{"reason", vsock::name(frontEnd.fault())},
              {"channel", vsock::name(frontEnd.channelFault())},
              {"memory", vsock::name(frontEnd.mappingFault())}});
  return Turn::FAILED;
}

void Server::logCounters(std::string_view event) {
  const Counters& c = device.counters;
  log.always(log::Level::INFO, event,
             {{"accepted", c.accepted},
              {"opened", c.opened},
              {"bad_handshakes", c.badHandshakes},
              {"over_cap", c.overCap},
              {"not_ready", c.notReady},
              {"guest_refused", c.guestRefused},
              {"timed_out", c.timedOut},
              {"to_guest_bytes", c.toGuestBytes},
              {"to_host_bytes", c.toHostBytes},
              {"guest_dials", c.guestDials},
              {"wrong_address", c.wrongAddress},
              {"wrong_type", c.wrongType},
              {"unknown_connection", c.unknownConnection},
              {"malformed", c.malformed},
              {"violations", c.violations},
              {"credit_lies", c.creditLies},
              {"resets_dropped", c.resetsDropped},
              {"queue_faults", c.queueFaults},
              {"ring_starts", c.ringStarts}});
  logged = c;
}

}  // namespace cordon::vsock
