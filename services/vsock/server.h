// The event loop: everything the process waits for, and nothing else.
#pragma once

#include <cstdint>

#include "services/vsock/device/device.h"
#include "services/vsock/hybrid/listener.h"
#include "services/vsock/log.h"
#include "services/vsock/poller.h"
#include "services/vsock/vhost-user/front-end.h"

namespace cordon::vsock {

struct ServerOptions {
  int vhostUser = -1;  // a connected stream socket to the front end
  int listener = -1;   // the listening hybrid socket, non-blocking
  int signals = -1;    // a signalfd: whatever it delivers ends the server
  std::uint64_t cid = 0;
  Limits limits;
};

class Server {
 public:
  Server(const ServerOptions& options, BoundedLog& log);

  // False if something cannot be watched. Before the sandbox.
  bool watch();
  // Serves until a signal or the end of the front end (0), or until the front end broke the
  // protocol (1).
  int run();

 private:
  enum class Turn : std::uint8_t { GOES_ON, STOP, FAILED };

  Turn dispatch(const epoll_event& event, TimePoint now);
  Turn endOf(FrontEnd::Outcome outcome);
  void logCounters(std::string_view event);

  ServerOptions options;
  BoundedLog& log;
  Poller poller;
  Device device;
  FrontEnd frontEnd;
  HybridListener hybrid;
  Counters logged;
};

}  // namespace cordon::vsock
