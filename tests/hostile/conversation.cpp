// Legal messages that are lies: of another request, of another kind, about another id, or not what
// was said before.
#include <string>
#include <utility>
#include <vector>

#include "tests/hostile/behaviours.h"
#include "tests/support/virtual-client.h"

namespace cordon::tests {
namespace {

using channel::BudgetLayer;
using channel::Id;

const Id STRANGER = idOf(0xff);

using Bytes = std::string (*)(const Id&);
Script saying(Bytes bytes) {
  return honestBut([bytes](const Heard& heard) { return Saying::bytes(bytes(heard.request.id)); });
}
Behaviour one(std::string name, Driver driver, Bytes bytes, std::string verdict) {
  return {.name = std::move(name),
          .driver = driver,
          .script = driver == Driver::PING ? Script([bytes](const Heard& heard) {
            return Saying::bytes(bytes(heard.request.id));
          })
                                           : saying(bytes),
          .verdict = std::move(verdict)};
}

// Silent to the exec; `bytes` of the poll's id and the exec's id to the poll.
Behaviour toThePoll(std::string name, std::string (*bytes)(const Id&, const Id&),
                    std::string verdict) {
  return {.name = std::move(name),
          .driver = Driver::EXEC,
          .script = honestBut([bytes](const Heard& heard) {
            const auto* poll = std::get_if<channel::Poll>(&heard.request.body);
            return poll == nullptr ? Saying::silence()
                                   : Saying::bytes(bytes(heard.request.id, poll->targetId));
          }),
          .verdict = std::move(verdict)};
}

// Half of one reply, then another whole one.
Behaviour twoReplies(std::string name, Driver driver, Bytes first, Bytes second,
                     std::string verdict) {
  return {.name = std::move(name),
          .driver = driver,
          .script = honestBut([first, second](const Heard& heard) {
            if (heard.connection > 1) return Saying::bytes(second(heard.request.id));
            // All but the END frame.
            const std::string whole = first(heard.request.id);
            return Saying::bytes(whole.substr(0, whole.size() - rawEnd("").size()));
          }),
          .verdict = std::move(verdict)};
}

// An honest write, and this to its ack.
Behaviour toTheAck(std::string name, Bytes bytes, std::string verdict) {
  return {.name = std::move(name),
          .driver = Driver::WRITE,
          .script =
              [bytes](const Heard& heard) {
                return Saying::bytes(heard.request.kind() == "ack" ? bytes(heard.request.id)
                                                                   : ok(heard.request.id));
              },
          .verdict = std::move(verdict)};
}

std::string timeoutOf(const Id& id, std::string errnoName, BudgetLayer layer) {
  return wire(id,
              channel::Error{.errnoName = std::move(errnoName), .message = "m", .layer = layer});
}

std::vector<Behaviour> pairing() {
  return {
      one(
          "wrong_id", Driver::READ, [](const Id&) { return ok(STRANGER); }, "tamper wrong-id x1"),
      one(
          "wrong_id_with_bulk", Driver::READ, [](const Id&) { return file(STRANGER, "abc"); },
          "tamper wrong-id x1"),
      one(
          "wrong_id_of_an_error", Driver::EXEC, [](const Id&) { return error(STRANGER, "EIO"); },
          "tamper wrong-id x1"),
      one(
          "wrong_id_of_a_stale_error", Driver::EXEC,
          [](const Id&) { return error(STRANGER, "ESTALE"); }, "tamper wrong-id x1"),
      one(
          "wrong_id_of_a_pong", Driver::PING, [](const Id&) { return pong(STRANGER); },
          "tamper wrong-id x1"),
      one(
          "exec_answered_by_pong", Driver::EXEC, [](const Id& id) { return pong(id); },
          "tamper wrong-kind x1"),
      one(
          "exec_answered_by_pending", Driver::EXEC, [](const Id& id) { return pending(id, id); },
          "tamper wrong-kind x1"),
      one(
          "exec_answered_by_file", Driver::EXEC, [](const Id& id) { return file(id, "abc"); },
          "tamper wrong-kind x1"),
      one(
          "exec_answered_by_ok", Driver::EXEC, [](const Id& id) { return ok(id); },
          "tamper wrong-kind x1"),
      one(
          "read_answered_by_ok", Driver::READ, [](const Id& id) { return ok(id); },
          "tamper wrong-kind x1"),
      one(
          "read_answered_by_exec_result", Driver::READ,
          [](const Id& id) { return result(id, "abc"); }, "tamper wrong-kind x1"),
      one(
          "write_answered_by_file", Driver::WRITE, [](const Id& id) { return file(id, ""); },
          "tamper wrong-kind x1"),
      one(
          "ping_answered_by_heartbeat", Driver::PING,
          [](const Id& id) { return wire(id, channel::Heartbeat{.uptimeMs = 1}); },
          "tamper wrong-kind x1"),
      one(
          "ping_answered_by_ping", Driver::PING,
          [](const Id& id) { return wire(id, channel::Ping{}); }, "tamper wrong-kind x1"),
      one(
          "read_answered_by_stage", Driver::READ,
          [](const Id& id) { return wire(id, channel::StageReport{}); }, "tamper wrong-kind x1"),
      one(
          "read_answered_by_the_request", Driver::READ,
          [](const Id& id) { return wire(id, channel::ReadFile{.path = "/f"}); },
          "tamper wrong-kind x1"),
      one(
          "read_answered_by_forward_ok", Driver::READ,
          [](const Id& id) { return wire(id, channel::ForwardOk{.handle = id}); },
          "tamper wrong-kind x1"),
      one(
          "diag_answered_by_ok", Driver::DIAG, [](const Id& id) { return ok(id); },
          "tamper wrong-kind x1"),
  };
}

std::vector<Behaviour> errors() {
  return {
      one(
          "foreign_layer_channel", Driver::EXEC,
          [](const Id& id) { return timeoutOf(id, "ETIME", BudgetLayer::CHANNEL); },
          "tamper foreign-layer x1"),
      one(
          "foreign_layer_untimed", Driver::READ,
          [](const Id& id) { return timeoutOf(id, "ETIME", BudgetLayer::UNTIMED); },
          "tamper foreign-layer x1"),
      one(
          "foreign_layer_transport", Driver::WRITE,
          [](const Id& id) { return timeoutOf(id, "ETIMEDOUT", BudgetLayer::TRANSPORT); },
          "tamper foreign-layer x1"),
      one(
          "foreign_layer_of_another_errno", Driver::EXEC,
          [](const Id& id) { return timeoutOf(id, "EIO", BudgetLayer::CHANNEL); },
          "tamper foreign-layer x1"),
      one(
          "foreign_layer_to_a_ping", Driver::PING,
          [](const Id& id) { return timeoutOf(id, "ETIME", BudgetLayer::CHANNEL); },
          "tamper foreign-layer x1"),
      toThePoll(
          "foreign_layer_of_a_stored_error",
          [](const Id&, const Id& exec) { return timeoutOf(exec, "ETIME", BudgetLayer::CHANNEL); },
          "tamper foreign-layer x1"),
      // Legal, if not believable: what an honest guest can also say stays a failure of the guest's.
      one(
          "command_time_out", Driver::EXEC, [](const Id& id) { return timeout(id); },
          "budget command x1"),
      one(
          "unknown_errno", Driver::READ, [](const Id& id) { return error(id, "EXYZZY"); },
          "guest EXYZZY x1"),
      one(
          "stale_at_once", Driver::WRITE, [](const Id& id) { return error(id, "ESTALE"); },
          "loss stale x1"),
  };
}

std::vector<Behaviour> polling() {
  return {
      toThePoll(
          "poll_answered_for_another_target",
          [](const Id&, const Id&) { return result(STRANGER, "x"); }, "tamper wrong-id x1"),
      toThePoll(
          "pending_for_another_id",
          [](const Id& poll, const Id&) { return pending(poll, STRANGER); }, "tamper wrong-id x1"),
      toThePoll(
          "pending_under_the_execs_id",
          [](const Id&, const Id& exec) { return pending(exec, exec); }, "tamper wrong-kind x1"),
      toThePoll(
          "poll_answered_by_ok", [](const Id& poll, const Id&) { return ok(poll); },
          "tamper wrong-kind x1"),
      toThePoll(
          "poll_answered_by_pong", [](const Id& poll, const Id&) { return pong(poll); },
          "tamper wrong-kind x1"),
      toThePoll(
          "result_under_the_polls_id", [](const Id& poll, const Id&) { return result(poll, "x"); },
          "tamper wrong-kind x1"),
      toThePoll(
          "stored_reply_of_another_kind", [](const Id&, const Id& exec) { return file(exec, "x"); },
          "tamper wrong-kind x1"),
      toThePoll(
          "poll_error_for_nobody", [](const Id&, const Id&) { return error(STRANGER, "ENOENT"); },
          "tamper wrong-id x1"),
      toThePoll(
          "forgets_what_it_was_sent",
          [](const Id& poll, const Id&) { return error(poll, "ENOENT"); }, "loss unknown-id x1"),
      toThePoll(
          "lost_its_result", [](const Id& poll, const Id&) { return error(poll, "ESTALE"); },
          "loss stale x1"),
      toThePoll(
          "poll_answered_by_garbage", [](const Id&, const Id&) { return std::string(16, '\xff'); },
          "tamper frame-too-large x1"),
      {.name = "pending_for_ever",
       .driver = Driver::EXEC,
       .script = honestBut([](const Heard& heard) {
         const auto* poll = std::get_if<channel::Poll>(&heard.request.body);
         return poll == nullptr ? Saying::silence()
                                : Saying::bytes(pending(heard.request.id, poll->targetId));
       }),
       .verdict = "budget command x1"},
      one(
          "polled_for_one_told_of_another", Driver::POLL,
          [](const Id&) { return result(STRANGER, "x"); }, "tamper wrong-id x1"),
      one(
          "polled_and_pending_for_another", Driver::POLL,
          [](const Id& id) { return pending(id, STRANGER); }, "tamper wrong-id x1"),
      one(
          "polled_and_answered_by_ok", Driver::POLL, [](const Id& id) { return ok(id); },
          "tamper wrong-kind x1"),
      one(
          "polled_and_answered_by_pong_of_the_target", Driver::POLL,
          [](const Id&) { return pong(VirtualClient::TARGET); }, "tamper wrong-kind x1"),
      one(
          "polled_and_unknown", Driver::POLL, [](const Id& id) { return error(id, "ENOENT"); },
          "loss unknown-id x1"),
  };
}

std::vector<Behaviour> replays() {
  return {
      twoReplies(
          "replay_of_other_bytes", Driver::READ, [](const Id& id) { return file(id, "abcdef"); },
          [](const Id& id) { return file(id, "abcdeg"); }, "tamper replay-differs x2"),
      twoReplies(
          "replay_of_another_size", Driver::READ, [](const Id& id) { return file(id, "abcdef"); },
          [](const Id& id) { return file(id, "abcdefg"); }, "tamper replay-differs x2"),
      twoReplies(
          "replay_with_another_status", Driver::EXEC,
          [](const Id& id) { return result(id, "abc", "", 0); },
          [](const Id& id) { return result(id, "abc", "", 1); }, "tamper replay-differs x2"),
      twoReplies(
          "replay_with_moved_streams", Driver::EXEC,
          [](const Id& id) { return result(id, "abc", "def"); },
          [](const Id& id) { return result(id, "abcd", "ef"); }, "tamper replay-differs x2"),
      twoReplies(
          "replay_of_other_errors", Driver::EXEC,
          [](const Id& id) { return result(id, "abc", "def"); },
          [](const Id& id) { return result(id, "abc", "dff"); }, "tamper replay-differs x2"),
      twoReplies(
          "replay_as_an_error", Driver::READ, [](const Id& id) { return file(id, "abc"); },
          [](const Id& id) { return error(id, "EIO"); }, "tamper replay-differs x2"),
      // The control: the same again is what a resend is for.
      twoReplies(
          "replay_of_the_same", Driver::EXEC, [](const Id& id) { return result(id, "abc", "def"); },
          [](const Id& id) { return result(id, "abc", "def"); }, "ok"),
      twoReplies(
          "evicted_between_resends", Driver::EXEC, [](const Id& id) { return result(id, "abc"); },
          [](const Id& id) { return error(id, "ESTALE"); }, "loss stale x2"),
      {.name = "pending_after_half_a_result",
       .driver = Driver::EXEC,
       .script = honestBut([](const Heard& heard) {
         const auto* poll = std::get_if<channel::Poll>(&heard.request.body);
         if (poll != nullptr) return Saying::bytes(pending(heard.request.id, poll->targetId));
         const std::string whole = result(heard.request.id, "abcdef");
         return Saying::holding(whole.substr(0, whole.size() - 3));
       }),
       .verdict = "tamper replay-differs x1"},
  };
}

std::vector<Behaviour> acks() {
  return {
      toTheAck(
          "ack_answered_by_garbage", [](const Id&) { return std::string(16, '\xff'); },
          "tamper frame-too-large x1"),
      toTheAck(
          "ack_answered_by_pong", [](const Id& id) { return pong(id); }, "tamper wrong-kind x1"),
      toTheAck(
          "ack_answered_under_another_id", [](const Id&) { return ok(STRANGER); },
          "tamper wrong-id x1"),
      toTheAck(
          "ack_answered_twice", [](const Id& id) { return ok(id) + ok(id); },
          "tamper trailing-data x1"),
      toTheAck(
          "ack_answered_by_bulk", [](const Id& id) { return file(id, "abc"); },
          "tamper wrong-kind x1"),
      // Not tamper, and no reason to fail what is done.
      toTheAck(
          "ack_answered_by_an_error", [](const Id& id) { return error(id, "EIO"); }, "ok"),
      toTheAck(
          "ack_never_answered", [](const Id&) { return std::string(); }, "ok"),
  };
}

}  // namespace

std::vector<Behaviour> conversationBehaviours() {
  std::vector<Behaviour> all;
  for (const auto& part : {pairing(), errors(), polling(), replays(), acks()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace cordon::tests
