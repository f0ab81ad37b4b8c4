#include "tests/support/conformance.h"

#include <algorithm>
#include <ostream>
#include <span>
#include <variant>

#include <gtest/gtest.h>

#include "services/parser/digest.h"

namespace cordon::tests {
namespace {

using parser::Failure;
using parser::Finished;

channel::Sha256 sha(const std::string& text) {
  return parser::digestOf(std::as_bytes(std::span<const char>(text)));
}

std::string allByteValues(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i);
  return bytes;
}

template <typename T>
std::string failureOf(const parser::Outcome<T>& outcome) {
  const auto* failure = std::get_if<Failure>(&outcome);
  return failure != nullptr ? parser::describe(*failure) : "ok";
}

// A name of this run's own: the same guest may be asked twice.
std::string scratchPath(const Vocabulary& guest, ConformanceClient& client, std::string_view name) {
  std::string output;
  std::string errors;
  const auto made = client.exec({.cmd = {"mktemp", "-d", guest.scratch + "/cordon-XXXXXX"}},
                                std::nullopt, output, errors);
  EXPECT_EQ(failureOf(made), "ok");
  while (!output.empty() && output.back() == '\n') output.pop_back();
  return output.append("/").append(name);
}

struct Ran {
  parser::Outcome<Finished> outcome;
  std::string output;
  std::string errors;

  [[nodiscard]] int rc() const {
    const auto* finished = std::get_if<Finished>(&outcome);
    return finished != nullptr ? finished->rc : -1000;
  }
};
Ran run(ConformanceClient& client, channel::Exec request,
        const std::optional<std::string>& input = std::nullopt) {
  Ran ran;
  if (input) request.dataSize = static_cast<std::int64_t>(input->size());
  ran.outcome = client.exec(std::move(request), input, ran.output, ran.errors);
  EXPECT_EQ(failureOf(ran.outcome), "ok");
  if (const auto* finished = std::get_if<Finished>(&ran.outcome)) {
    EXPECT_EQ(finished->stdoutSize, ran.output.size());
    EXPECT_EQ(finished->stderrSize, ran.errors.size());
    EXPECT_EQ(finished->stdoutSha256, sha(ran.output));
    EXPECT_EQ(finished->stderrSha256, sha(ran.errors));
    EXPECT_EQ(finished->deliveries, 1u);
  }
  return ran;
}

// Exchanges that `what` takes; nothing where the client cannot tell.
template <typename What>
std::optional<unsigned> exchangesOf(ConformanceClient& client, What&& what) {
  const auto before = client.exchanges();
  what();
  const auto after = client.exchanges();
  if (!before || !after) return std::nullopt;
  return *after - *before;
}

void pingTells(ConformanceClient& client, const Vocabulary&) {
  const auto first = client.ping();
  ASSERT_EQ(failureOf(first), "ok");
  EXPECT_FALSE(std::get<parser::Pong>(first).daemon.empty());
  const auto second = client.ping();
  ASSERT_EQ(failureOf(second), "ok");
  EXPECT_EQ(std::get<parser::Pong>(first).session, std::get<parser::Pong>(second).session);
}

void execEcho(ConformanceClient& client, const Vocabulary& guest) {
  const Ran ran = run(client, {.cmd = guest.echo});
  EXPECT_EQ(ran.rc(), 0);
  EXPECT_EQ(ran.output, "hello\n");
  EXPECT_EQ(ran.errors, "");
}

void execStderr(ConformanceClient& client, const Vocabulary& guest) {
  const Ran ran = run(client, {.cmd = guest.complain});
  EXPECT_EQ(ran.rc(), 3);
  EXPECT_EQ(ran.output, "");
  EXPECT_EQ(ran.errors, "complaint");
}

void execStdin(ConformanceClient& client, const Vocabulary& guest) {
  const std::string input = allByteValues(51200);
  const Ran ran = run(client, {.cmd = guest.copy}, input);
  EXPECT_EQ(ran.rc(), 0);
  EXPECT_TRUE(ran.output == input) << "of " << ran.output.size() << " bytes";
}

void execEmptyStdin(ConformanceClient& client, const Vocabulary& guest) {
  const Ran ran = run(client, {.cmd = guest.copy}, "");
  EXPECT_EQ(ran.rc(), 0);
  EXPECT_EQ(ran.output, "");
}

void execEnvironment(ConformanceClient& client, const Vocabulary& guest) {
  const Ran ran = run(client, {.cmd = guest.whereAmI,
                               .cwd = guest.directory,
                               .env = {{"ANSWER", "42 \"quoted\" \xe2\x80\xa8"}},
                               .user = guest.user});
  EXPECT_EQ(ran.rc(), 0) << ran.errors;
  EXPECT_EQ(ran.output, guest.directory + "\n" + guest.user + "\n42 \"quoted\" \xe2\x80\xa8\n");
}

void execUnknownCommand(ConformanceClient& client, const Vocabulary&) {
  EXPECT_EQ(run(client, {.cmd = {"cordon-no-such-command"}}).rc(), 127);
}

void execKilled(ConformanceClient& client, const Vocabulary& guest) {
  EXPECT_EQ(run(client, {.cmd = guest.killItself}).rc(), -9);
}

void writeThenRead(ConformanceClient& client, const Vocabulary& guest) {
  const std::string bytes = allByteValues(100000);
  const std::string path = scratchPath(guest, client, "file");
  const auto written =
      client.writeFile({.path = path, .dataSize = static_cast<std::int64_t>(bytes.size())}, bytes);
  ASSERT_EQ(failureOf(written), "ok");
  EXPECT_EQ(std::get<parser::Written>(written), (parser::Written{sha(bytes), 1}));
  std::string content;
  const auto read = client.readFile({.path = path}, content);
  ASSERT_EQ(failureOf(read), "ok");
  EXPECT_EQ(std::get<parser::Content>(read), (parser::Content{bytes.size(), sha(bytes), 1}));
  EXPECT_TRUE(content == bytes) << "of " << content.size() << " bytes";
}

void writeEmptyWithMode(ConformanceClient& client, const Vocabulary& guest) {
  const std::string path = scratchPath(guest, client, "empty");
  ASSERT_EQ(failureOf(client.writeFile({.path = path, .mode = 0640, .dataSize = 0}, "")), "ok");
  std::string content = "not yet read";
  ASSERT_EQ(failureOf(client.readFile({.path = path}, content)), "ok");
  EXPECT_EQ(content, "");
  EXPECT_EQ(run(client, {.cmd = {"stat", "-c", "%a", path}}).output, "640\n");
}

void readMissing(ConformanceClient& client, const Vocabulary& guest) {
  std::string content;
  EXPECT_EQ(failureOf(client.readFile({.path = guest.scratch + "/no-such-directory-of-cordon/file"},
                                      content)),
            "guest ENOENT");
}

void readDirectory(ConformanceClient& client, const Vocabulary& guest) {
  std::string content;
  EXPECT_EQ(failureOf(client.readFile({.path = guest.scratch}, content)), "guest EISDIR");
}

void writeDirectory(ConformanceClient& client, const Vocabulary& guest) {
  EXPECT_EQ(failureOf(client.writeFile({.path = guest.scratch, .dataSize = 1}, "x")),
            "guest EISDIR");
}

void readOverTheCap(ConformanceClient& client, const Vocabulary& guest) {
  const std::string bytes = allByteValues(10000);
  const std::string path = scratchPath(guest, client, "long");
  ASSERT_EQ(failureOf(client.writeFile({.path = path, .dataSize = 10000}, bytes)), "ok");
  std::string content;
  EXPECT_EQ(failureOf(client.readFile({.path = path, .maxBytes = 4096}, content)),
            "file-limit 4096");
  EXPECT_EQ(content, bytes.substr(0, 4096));
  content.clear();
  EXPECT_EQ(failureOf(client.readFile({.path = path, .maxBytes = 10000}, content)), "ok");
}

void commandBudget(ConformanceClient& client, const Vocabulary& guest) {
  std::string output;
  std::string errors;
  const auto outcome = client.exec({.cmd = guest.sleepTwoSeconds, .budget = {.commandMs = 50}},
                                   std::nullopt, output, errors);
  EXPECT_EQ(failureOf(outcome), "budget command");
}

void exchangeBudgets(ConformanceClient& client, const Vocabulary& guest) {
  ASSERT_TRUE(client.exchanges().has_value());
  const std::string bytes = allByteValues(100000);
  const std::string path = scratchPath(guest, client, "budget");
  EXPECT_EQ(exchangesOf(client, [&] { client.ping(); }), 1u);
  EXPECT_EQ(exchangesOf(client, [&] { run(client, {.cmd = guest.copy}, bytes); }), 2u);
  EXPECT_EQ(
      exchangesOf(client, [&] { client.writeFile({.path = path, .dataSize = 100000}, bytes); }),
      2u);
  std::string content;
  EXPECT_EQ(exchangesOf(client, [&] { client.readFile({.path = path}, content); }), 2u);
  EXPECT_EQ(content.size(), bytes.size());
}

void resendAfterAckIsStale(ConformanceClient& client, const Vocabulary& guest) {
  channel::Id id;
  id.bytes.fill(0xc0);
  const Vocabulary& words = guest;
  std::string output;
  std::string errors;
  // The guest may have been asked before: an id of this run's own, of the session's.
  const auto pong = client.ping();
  ASSERT_EQ(failureOf(pong), "ok");
  static std::uint8_t run = 0;
  id.bytes.at(0) = ++run;
  std::copy_n(std::get<parser::Pong>(pong).session.bytes.begin(), 8, id.bytes.begin() + 8);
  ASSERT_EQ(failureOf(client.exec({.cmd = words.echo}, std::nullopt, output, errors, id)), "ok");
  EXPECT_EQ(output, "hello\n");
  output.clear();
  EXPECT_EQ(failureOf(client.exec({.cmd = words.echo}, std::nullopt, output, errors, id)),
            "loss stale");
  EXPECT_EQ(output, "");
  EXPECT_EQ(failureOf(client.poll(id)), "loss unknown-id");
}

void pollUnknown(ConformanceClient& client, const Vocabulary&) {
  channel::Id id;
  id.bytes.fill(0xee);
  EXPECT_EQ(failureOf(client.poll(id)), "loss unknown-id");
}

void diagTells(ConformanceClient& client, const Vocabulary&) {
  const auto outcome = client.diag(5);
  ASSERT_EQ(failureOf(outcome), "ok");
  const auto& report = std::get<parser::DiagReport>(outcome);
  EXPECT_FALSE(report.entries.empty());
  EXPECT_LE(report.entries.size(), 5u);
}

}  // namespace

void PrintTo(const ConformanceCase& one, std::ostream* out) {
  *out << one.name;
}

const std::vector<ConformanceCase>& conformanceCases() {
  static const std::vector<ConformanceCase> cases{
      {"ping", pingTells},
      {"exec_echo", execEcho},
      {"exec_stderr", execStderr},
      {"exec_stdin", execStdin},
      {"exec_empty_stdin", execEmptyStdin},
      {"exec_environment", execEnvironment},
      {"exec_unknown_command", execUnknownCommand},
      {"exec_killed", execKilled},
      {"write_then_read", writeThenRead},
      {"write_empty_with_mode", writeEmptyWithMode},
      {"read_missing", readMissing},
      {"read_directory", readDirectory},
      {"write_directory", writeDirectory},
      {"read_over_the_cap", readOverTheCap},
      {"command_budget", commandBudget},
      {"exchange_budgets", exchangeBudgets, true},
      {"resend_after_ack_is_stale", resendAfterAckIsStale},
      {"poll_unknown", pollUnknown},
      {"diag", diagTells},
  };
  return cases;
}

}  // namespace cordon::tests
