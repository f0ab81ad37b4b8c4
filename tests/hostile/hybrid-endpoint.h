// A scripted guest behind a real hybrid socket: what a parser in another process dials.
#pragma once

#include <string>

#include <kj/async-io.h>

#include "tests/support/scripted-guest.h"

namespace cordon::tests {

class HybridEndpoint final : private kj::TaskSet::ErrorHandler {
 public:
  // Listens at `path`. A dial script is played as a device would: UNREACHABLE is a connection
  // closed before its OK, HANDSHAKE an OK without a port. A dial that hangs gets no OK and stays
  // open; PEER_MISMATCH is nothing that a socket could play, and fails. haste: of ScriptedGuest.
  HybridEndpoint(kj::AsyncIoContext& io, const std::string& path, Script script, DialScript dial,
                 unsigned haste);
  KJ_DISALLOW_COPY(HybridEndpoint);

  // Connections that neither side has closed yet, in their handshake or behind it.
  [[nodiscard]] unsigned open() const { return greeting + guest.open(); }
  [[nodiscard]] unsigned accepted() const { return count; }

 private:
  kj::Promise<void> accept();
  kj::Promise<void> greet(kj::Own<kj::AsyncIoStream> stream, Dial dial);
  void taskFailed(kj::Exception&& exception) override;

  DialScript dials;
  ScriptedGuest guest;
  kj::Own<kj::ConnectionReceiver> listener;
  unsigned count = 0;
  unsigned greeting = 0;
  kj::TaskSet tasks;
};

}  // namespace cordon::tests
