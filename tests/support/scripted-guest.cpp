#include "tests/support/scripted-guest.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <kj/debug.h>

#include "common/channel/decoder.h"
#include "tests/support/virtual-client.h"

namespace cordon::tests {

Saying Saying::dribble(std::string_view all, kj::Duration pace, bool holdsOpen) {
  Saying saying{.holds = holdsOpen};
  for (const char byte : all) saying.parts.push_back({.bytes = {byte}, .after = pace});
  return saying;
}

struct ScriptedGuest::Peer {
  kj::Own<kj::AsyncIoStream> stream;
  channel::Decoder decoder{std::uint64_t{1} << 30};
  std::array<kj::byte, 65536> buffer{};
  std::string bulk;
  Saying saying;

  // False where the host went away before its request was whole.
  kj::Promise<bool> hear() {
    return stream->tryRead(buffer.data(), 1, buffer.size()).then([this](std::size_t size) {
      auto input = std::as_bytes(std::span<const kj::byte>(buffer.data(), size));
      if (size == 0) return kj::Promise<bool>(false);
      for (;;) {
        const auto event = decoder.next(input);
        if (std::holds_alternative<channel::Decoder::NeedMore>(event)) return hear();
        if (const auto* part = std::get_if<channel::Decoder::Bulk>(&event))
          bulk.append(reinterpret_cast<const char*>(part->bytes.data()), part->bytes.size());
        if (const auto* error = std::get_if<channel::DecodeError>(&event)) {
          kj::throwFatalException(KJ_EXCEPTION(FAILED, "the host sent an illegal request",
                                               std::string(name(*error)).c_str()));
        }
        if (std::holds_alternative<channel::Decoder::Done>(event)) {
          if (!input.empty()) {
            kj::throwFatalException(
                KJ_EXCEPTION(FAILED, "the host sent something behind its request"));
          }
          return kj::Promise<bool>(true);
        }
      }
    });
  }
};

Script honestBut(Script script, channel::Id session) {
  return [script = std::move(script), session](const Heard& heard) {
    const channel::Id& id = heard.request.id;
    if (std::holds_alternative<channel::Ack>(heard.request.body)) return Saying::bytes(ok(id));
    if (std::holds_alternative<channel::Ping>(heard.request.body))
      return Saying::bytes(pong(id, session));
    return script(heard);
  };
}

ScriptedGuest::ScriptedGuest(kj::Timer& clock, Script what, DialScript dials, unsigned hurry)
    : timer(clock), script(std::move(what)), dial(std::move(dials)), haste(hurry), tasks(*this) {}

kj::Promise<parser::Transport::Connection> ScriptedGuest::connect() {
  const unsigned number = ++dialCount;
  const Dial outcome = dial ? dial(number) : Dial(DialWorks{});
  if (std::holds_alternative<DialHangs>(outcome)) return kj::NEVER_DONE;
  if (const auto* unreachable = std::get_if<parser::Unreachable>(&outcome))
    return Connection(*unreachable);
  if (const auto* tamper = std::get_if<parser::Tamper>(&outcome)) return Connection(*tamper);

  auto pipe = kj::newTwoWayPipe();
  const auto* deaf = std::get_if<DialIsDeaf>(&outcome);
  serve(kj::mv(pipe.ends[1]), deaf != nullptr ? std::optional(deaf->saying) : std::nullopt);
  return Connection(kj::mv(pipe.ends[0]));
}

void ScriptedGuest::serve(kj::Own<kj::AsyncIoStream> stream, std::optional<Saying> deaf) {
  auto peer = kj::heap<Peer>();
  Peer& guest = *peer;
  guest.stream = kj::mv(stream);
  const unsigned connection = ++connections;
  kj::Promise<void> life = kj::READY_NOW;
  if (deaf) {
    guest.saying = std::move(*deaf);
    life = say(guest, guest.saying, 0);
  } else {
    life = guest.hear().then([this, &guest, connection](bool whole) -> kj::Promise<void> {
      if (!whole) return kj::READY_NOW;
      log.push_back({connection, guest.decoder.take(), std::move(guest.bulk)});
      guest.saying = script(log.back());
      return say(guest, guest.saying, 0);
    });
  }
  ++openConnections;
  tasks.add(life.attach(kj::mv(peer), kj::defer([this]() { --openConnections; })));
}

kj::Promise<void> ScriptedGuest::say(Peer& peer, const Saying& saying, std::size_t index) {
  if (index == saying.parts.size()) {
    if (!saying.holds) return kj::READY_NOW;
    // Until the host goes.
    return peer.stream->whenWriteDisconnected();
  }
  const Saying::Part& part = saying.parts[index];
  return timer.afterDelay(part.after / haste)
      .exclusiveJoin(peer.stream->whenWriteDisconnected())
      .then([&peer, &part]() { return peer.stream->write(part.bytes.data(), part.bytes.size()); })
      .then([this, &peer, &saying, index]() { return say(peer, saying, index + 1); });
}

unsigned ScriptedGuest::count(std::string_view kind) const {
  return static_cast<unsigned>(std::count_if(
      log.begin(), log.end(), [&](const Heard& one) { return one.request.kind() == kind; }));
}

void ScriptedGuest::taskFailed(kj::Exception&& exception) {
  // The host may hang up on what it refuses.
  if (exception.getType() != kj::Exception::Type::DISCONNECTED)
    kj::throwFatalException(kj::mv(exception));
}

}  // namespace cordon::tests
