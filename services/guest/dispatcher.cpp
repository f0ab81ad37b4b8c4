#include "services/guest/dispatcher.h"

#include <cerrno>
#include <exception>
#include <string>
#include <sys/random.h>
#include <system_error>
#include <utility>

namespace cordon::guest {
namespace {

constexpr const char* DAEMON = "cordon-guest " CORDON_VERSION;

// Minted once a process: a host that sees another one knows that the store is empty. Source:
// protocols/channel.md §10.
channel::Id randomId() {
  channel::Id id;
  std::size_t filled = 0;
  while (filled < id.bytes.size()) {
    ssize_t count = ::getrandom(id.bytes.data() + filled, id.bytes.size() - filled, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw std::system_error(errno, std::generic_category(), "getrandom");
    filled += static_cast<std::size_t>(count);
  }
  return id;
}

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

Dispatcher::Dispatcher(DiagRing& ring, Perform performer)
    : diag(ring), perform(std::move(performer)), session(randomId()) {}

Answer Dispatcher::answer(const Request& request) {
  const channel::Id& id = request.message.id;
  if (!std::holds_alternative<channel::Poll>(request.message.body)) {
    diag.request(id, request.message.kind());
  }
  return std::visit(
      Overloaded{
          [&](const channel::Ping&) { return Answer{pong(id)}; },
          [&](const channel::Poll& poll) { return Answer{polled(id, poll.targetId)}; },
          [&](const channel::Ack& ack) {
            store.acknowledge(ack.targetId);
            return Answer{makeReply(diag, id, channel::Ok{})};
          },
          [&](const channel::Diag& wanted) {
            return Answer{makeDiagResult(diag, id, static_cast<std::size_t>(wanted.maxEntries))};
          },
          [&](const auto&) { return once(request); },
      },
      request.message.body);
}

ReplyPtr Dispatcher::pong(const channel::Id& id) {
  channel::Pong body;
  body.daemon = DAEMON;
  body.session = session;
  return makeReply(diag, id, std::move(body));
}

ReplyPtr Dispatcher::polled(const channel::Id& id, const channel::Id& target) {
  return std::visit(Overloaded{
                        [](ReplyPtr reply) { return reply; },
                        [&](ReplyStore::Stale) { return stale(id); },
                        [&](ReplyStore::Pending running) {
                          return makeReply(diag, id, channel::Pending{target, running.elapsedMs});
                        },
                        [&](ReplyStore::Unknown) {
                          return makeError(diag, id, "ENOENT", "no request of that id is known");
                        },
                    },
                    store.poll(target));
}

Answer Dispatcher::once(const Request& request) {
  const channel::Id& id = request.message.id;
  return std::visit(
      Overloaded{
          [](ReplyPtr reply) { return Answer{std::move(reply)}; },
          [&](ReplyStore::Stale) { return Answer{stale(id)}; },
          [&](const ReplyStore::Attach& attach) { return Answer{store.await(attach.running)}; },
          [&](const ReplyStore::Run& run) {
            Answer made = execute(request);
            store.complete(run.running, made.reply);
            return made;
          },
      },
      store.claim(id));
}

Answer Dispatcher::execute(const Request& request) {
  const channel::Message& message = request.message;
  bool known = std::holds_alternative<channel::Exec>(message.body) ||
               std::holds_alternative<channel::ReadFile>(message.body) ||
               std::holds_alternative<channel::WriteFile>(message.body);
  if (!known) {
    return {makeError(diag, message.id, "EPROTO",
                      "a guest does not serve the kind " + std::string(message.kind()))};
  }
  std::string reason;
  try {
    return perform(request);
  } catch (const std::exception& exception) {
    reason = exception.what();
  } catch (...) {
    reason = "not a std::exception";
  }
  diag.error("handler-crashed", std::string(message.kind()) + ": " + reason, message.id);
  return {makeError(diag, message.id, "EIO", "the agent failed: " + reason), false};
}

ReplyPtr Dispatcher::stale(const channel::Id& id) {
  return makeError(diag, id, "ESTALE", "the request ran and its result is gone");
}

}  // namespace cordon::guest
