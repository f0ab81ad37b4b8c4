// A client and a scripted guest in virtual time: what most tests of the channel's host side stand
// on.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "services/parser/guest-client.h"
#include "tests/support/scripted-guest.h"
#include "tests/support/streams.h"
#include "tests/support/virtual-world.h"
#include "tests/support/wire.h"

namespace cordon::tests {

struct VirtualClient {
  explicit VirtualClient(Script script, DialScript dial = nullptr,
                         parser::ClientOptions options = {})
      : guest(world.timer(), std::move(script), std::move(dial)),
        client(guest, world.timer(), ids, verdicts, options) {}

  VirtualWorld world;
  ScriptedGuest guest;
  CountingIds ids;
  RecordedVerdicts verdicts;
  parser::GuestClient client;
  MemorySink output;
  MemorySink errors;

  parser::Outcome<parser::Pong> ping(channel::Budget budget = {}) {
    return world.run(client.ping(REQUEST, budget));
  }
  parser::Outcome<parser::Pong> pin() { return world.run(client.pinSession(idOf(0x91), {})); }
  parser::Outcome<parser::Finished> exec(channel::Exec request = {.cmd = {"true"}}) {
    return world.run(client.exec(REQUEST, std::move(request), nullptr, output, errors));
  }
  parser::Outcome<parser::Content> read(channel::ReadFile request = {.path = "/f"}) {
    return world.run(client.readFile(REQUEST, std::move(request), output));
  }
  parser::Outcome<parser::Written> write(std::string bytes,
                                         channel::WriteFile request = {.path = "/f"}) {
    MemorySource source(std::move(bytes));
    request.dataSize = static_cast<std::int64_t>(source.content.size());
    return world.run(client.writeFile(REQUEST, std::move(request), source));
  }
  parser::Outcome<parser::Polled> poll(channel::Budget budget = {}) {
    return world.run(client.poll(REQUEST, TARGET, budget));
  }
  parser::Outcome<parser::DiagReport> diag(std::int64_t entries = 100) {
    return world.run(client.diag(REQUEST, entries, {}));
  }

  inline static const channel::Id REQUEST = idOf(0xa1);
  inline static const channel::Id TARGET = idOf(0x7e);
  inline static const channel::Id SESSION = idOf(0x5e);
  inline static const channel::Id OTHER_SESSION = idOf(0x0d);
};

// "ok" or what describe() says of the failure, and " ×<deliveries>" where those are known.
template <typename T>
std::string verdictOf(const parser::Outcome<T>& outcome) {
  if (const auto* failure = std::get_if<parser::Failure>(&outcome))
    return parser::describe(*failure) + " x" + std::to_string(failure->deliveries);
  return "ok";
}

// Replies of an honest guest, for scripts.
inline std::string pong(const channel::Id& id,
                        const channel::Id& session = VirtualClient::SESSION) {
  return wire(id, channel::Pong{.daemon = "guest 1", .protocol = 3, .session = session});
}
inline std::string ok(const channel::Id& id) {
  return wire(id, channel::Ok{});
}
inline std::string result(const channel::Id& id, std::string_view out, std::string_view err = {},
                          std::int64_t rc = 0) {
  const std::string bulk = std::string(out).append(err);
  channel::ExecResult body{.rc = rc,
                           .stdoutSize = static_cast<std::int64_t>(out.size()),
                           .stderrSize = static_cast<std::int64_t>(err.size())};
  if (!bulk.empty()) body.dataSize = static_cast<std::int64_t>(bulk.size());
  return wire(id, body, bulk);
}
inline std::string file(const channel::Id& id, std::string_view bytes, bool truncated = false) {
  channel::FileData body{.size = static_cast<std::int64_t>(bytes.size()), .truncated = truncated};
  if (!bytes.empty()) body.dataSize = static_cast<std::int64_t>(bytes.size());
  return wire(id, body, bytes);
}
inline std::string pending(const channel::Id& id, const channel::Id& target,
                           std::int64_t elapsedMs = 1000) {
  return wire(id, channel::Pending{.targetId = target, .elapsedMs = elapsedMs});
}
inline std::string error(const channel::Id& id, std::string errnoName) {
  return wire(id, channel::Error{.errnoName = std::move(errnoName), .message = "m"});
}
inline std::string timeout(const channel::Id& id,
                           channel::BudgetLayer layer = channel::BudgetLayer::COMMAND,
                           std::string partial = "tail") {
  return wire(
      id, channel::Error{
              .errnoName = "ETIME", .message = "m", .layer = layer, .partial = std::move(partial)});
}

// Acks and pings are answered as an honest guest does; everything else by `script`.
Script honestBut(Script script, channel::Id session = VirtualClient::SESSION);

}  // namespace cordon::tests
