// A guest that does what a test tells it, connection by connection, in the test's own event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <kj/async.h>
#include <kj/timer.h>

#include "common/channel/message.h"
#include "services/parser/transport.h"

namespace cordon::tests {

// One connection as the guest saw it.
struct Heard {
  unsigned connection = 0;  // from 1, over all of this guest's
  channel::Message request;
  std::string bulk;
};

// What the guest does with it, once it has read the whole request.
struct Saying {
  struct Part {
    std::string bytes = {};
    kj::Duration after = 0 * kj::SECONDS;  // waited before they are written
  };
  std::vector<Part> parts = {};
  bool holds = false;  // never closes

  static Saying bytes(std::string all) { return {.parts = {{.bytes = std::move(all)}}}; }
  static Saying holding(std::string all) {
    return {.parts = {{.bytes = std::move(all)}}, .holds = true};
  }
  static Saying silence() { return {.holds = true}; }
  static Saying close() { return {}; }
  // Each byte a part of its own.
  static Saying dribble(std::string_view all, kj::Duration pace, bool holds = false);
};

using Script = std::function<Saying(const Heard&)>;

// What becomes of a dial, by its number from 1.
struct DialHangs {};
struct DialWorks {};
// The guest never reads; what it says it says at once, and it closes only if told to.
struct DialIsDeaf {
  Saying saying;
};
using Dial = std::variant<DialWorks, DialHangs, parser::Unreachable, parser::Tamper, DialIsDeaf>;
using DialScript = std::function<Dial(unsigned)>;

class ScriptedGuest final : public parser::Transport, private kj::TaskSet::ErrorHandler {
 public:
  // What a script waits, it waits 1/haste of: for guests in real time.
  ScriptedGuest(kj::Timer& timer, Script script, DialScript dial = nullptr, unsigned haste = 1);

  kj::Promise<Connection> connect() override;
  // Plays the script on a stream that somebody else brought, its handshake being over; deaf: says
  // this instead and never reads.
  void serve(kj::Own<kj::AsyncIoStream> stream, std::optional<Saying> deaf = std::nullopt);

  // Every request that was heard whole, in order.
  [[nodiscard]] const std::vector<Heard>& heard() const { return log; }
  [[nodiscard]] unsigned dials() const { return dialCount; }
  // Connections that neither side has closed yet.
  [[nodiscard]] unsigned open() const { return openConnections; }
  // How often a request of this kind was heard.
  [[nodiscard]] unsigned count(std::string_view kind) const;

 private:
  struct Peer;
  kj::Promise<void> say(Peer& peer, const Saying& saying, std::size_t part);
  void taskFailed(kj::Exception&& exception) override;

  kj::Timer& timer;
  Script script;
  DialScript dial;
  const unsigned haste;
  std::vector<Heard> log;
  unsigned dialCount = 0;
  unsigned connections = 0;
  unsigned openConnections = 0;
  kj::TaskSet tasks;
};

}  // namespace cordon::tests
