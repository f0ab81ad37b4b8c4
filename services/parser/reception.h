// What one operation expects to hear, over all attempts: judges the control part of each reply
// before any of its bulk is taken, sends bulk to where it belongs, and holds replies that come
// again against what came before. Source: channel.md §6.5, §8.3, §9 and §12.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include <kj/async.h>

#include "common/channel/message.h"
#include "services/parser/bulk.h"
#include "services/parser/digest.h"
#include "services/parser/outcome.h"

namespace cordon::parser {

enum class Operation : std::uint8_t { PING, EXEC, READ_FILE, WRITE_FILE, POLL, ACK, DIAG };
// The guest keeps the reply until it is acknowledged and sends the same one again (channel.md §10).
constexpr bool isDurable(Operation operation) {
  return operation == Operation::EXEC || operation == Operation::READ_FILE ||
         operation == Operation::WRITE_FILE;
}

class Reception {
 public:
  // `target`: the request whose reply is wanted, of kind `operation`; with Operation::POLL, the
  // request polled for. Without sinks bulk is read, checked and dropped. `errors`: for what stands
  // behind the first stdout_size bytes.
  Reception(Operation operation, channel::Id target, std::uint64_t bulkCap,
            kj::Maybe<BulkSink&> output = nullptr, kj::Maybe<BulkSink&> errors = nullptr);
  KJ_DISALLOW_COPY(Reception);

  // Entries of a diag_result that may come; more than was asked for, no honest guest sends.
  void limitEntries(std::int64_t most) { maxEntries = most; }
  // Bytes of bulk that a reply may have.
  [[nodiscard]] std::uint64_t cap() const { return bulkCap; }

  // A round trip begins, with the target's own request or with a poll of that id.
  void begin(std::optional<channel::Id> poll);
  // Whether an honest guest can say this now.
  std::optional<TamperClass> judge(const channel::Message& message);
  // Whether the message that was judged answers the poll itself (pending, or an error about it).
  [[nodiscard]] bool isAboutPoll(const channel::Message& message) const;

  // Nothing to wait for; or a sink took a part (false: it failed); or the bulk is not what came
  // before.
  struct Taken {};
  struct Differs {
    channel::Sha256 replayed;
  };
  using Take = std::variant<Taken, kj::Promise<bool>, Differs>;
  // Consumes from the front of `bytes`, the next bulk, and shortens it; call again until it is
  // empty. What is consumed must stay valid until the promise resolves.
  Take take(std::span<const std::byte>& bytes);
  // All was taken and verified: ends the sinks. False where one failed.
  kj::Promise<bool> end();

  [[nodiscard]] channel::Sha256 outputDigest() const { return outputCheck.value(); }
  [[nodiscard]] channel::Sha256 errorsDigest() const { return errorsCheck.value(); }

 private:
  [[nodiscard]] bool answersTarget(const channel::Body& body) const;
  std::optional<TamperClass> judgeReplay(const channel::Message& message);

  const Operation operation;
  const channel::Id target;
  const std::uint64_t bulkCap;
  kj::Maybe<BulkSink&> output;
  kj::Maybe<BulkSink&> errors;

  std::int64_t maxEntries = channel::MAX_DIAG_ENTRIES;
  std::optional<channel::Id> poll;
  std::optional<channel::Message>
      first;                   // the reply as it came for the first time, complete or not
  std::uint64_t split = 0;     // bytes of bulk that belong to `output`
  std::uint64_t position = 0;  // in the bulk of this attempt
  ReplayCheck outputCheck;
  ReplayCheck errorsCheck;
};

}  // namespace cordon::parser
