// The golden frames of protocols/vectors on the parser's side: what the codec refuses is tamper of
// that class for a caller, what it accepts is taken where it answers the request.
#include "common/channel/testing/vectors.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/virtual-client.h"

namespace cordon::parser {
namespace {

using channel::DecodeError;
using tests::Heard;
using tests::Saying;
using tests::verdictOf;
using tests::VirtualClient;

std::string verdictOn(DecodeError error) {
  return isTamper(error) ? "tamper " + std::string(name(error)) + " x1" : "loss reply-lost x3";
}

TEST(GoldenFrames, InvalidRepliesAreTamperOfTheirClass) {
  std::size_t count = 0;
  for (const auto& vector : channel::testing::invalidVectors()) {
    SCOPED_TRACE(vector.name);
    VirtualClient host([&](const Heard&) { return Saying::bytes(vector.bytes); });
    const auto cap = static_cast<std::int64_t>(vector.bulkCap);
    EXPECT_EQ(verdictOf(host.read({.path = "/f", .maxBytes = cap})), verdictOn(vector.error));
    ++count;
  }
  EXPECT_GE(count, 60u);
}

// The verdict on a legal message that comes as the answer to `operation`.
std::string answerTo(std::string_view operation, const channel::testing::ValidVector& vector) {
  VirtualClient host([&](const Heard& heard) {
    return Saying::bytes(heard.request.kind() == "ack" ? tests::ok(heard.request.id)
                                                       : vector.bytes);
  });
  const channel::Id& id = vector.message.id;
  tests::MemorySource source("x");
  tests::VirtualWorld& world = host.world;
  if (operation == "ping") return verdictOf(world.run(host.client.ping(id, {})));
  if (operation == "exec")
    return verdictOf(
        world.run(host.client.exec(id, {.cmd = {"x"}}, nullptr, host.output, host.errors)));
  if (operation == "read_file")
    return verdictOf(world.run(host.client.readFile(id, {.path = "/f"}, host.output)));
  if (operation == "write_file")
    return verdictOf(world.run(host.client.writeFile(id, {.path = "/f", .dataSize = 1}, source)));
  if (operation == "diag") return verdictOf(world.run(host.client.diag(id, 1000, {})));
  const auto* pending = std::get_if<channel::Pending>(&vector.message.body);
  return verdictOf(world.run(host.client.poll(pending != nullptr ? id : tests::idOf(0x99),
                                              pending != nullptr ? pending->targetId : id, {})));
}

// channel.md §6.5: which kinds answer which request.
const std::map<std::string_view, std::set<std::string_view>> PAIRS{
    {"ping", {"pong"}},           {"exec", {"exec_result"}},
    {"read_file", {"file_data"}}, {"write_file", {"ok"}},
    {"diag", {"diag_result"}},    {"poll", {"exec_result", "file_data", "ok", "pending"}},
};

TEST(GoldenFrames, ValidRepliesAreTakenWhereTheyPair) {
  std::size_t taken = 0;
  for (const auto& vector : channel::testing::validVectors()) {
    for (const auto& [operation, kinds] : PAIRS) {
      SCOPED_TRACE(vector.name + " to " + std::string(operation));
      const std::string verdict = answerTo(operation, vector);
      const std::string_view kind = vector.message.kind();
      if (const auto* error = std::get_if<channel::Error>(&vector.message.body)) {
        const bool isForeign = error->layer && *error->layer != channel::BudgetLayer::COMMAND;
        const bool isTimeout = error->errnoName == "ETIME" || error->errnoName == "ETIMEDOUT";
        EXPECT_EQ(verdict, isForeign                      ? "tamper foreign-layer x1"
                           : error->errnoName == "ESTALE" ? "loss stale x1"
                           : isTimeout                    ? "budget command x1"
                                                          : "guest " + error->errnoName + " x1");
        ++taken;
      } else if (kinds.contains(kind)) {
        const auto* file = std::get_if<channel::FileData>(&vector.message.body);
        EXPECT_EQ(verdict, file != nullptr && file->truncated && operation == "read_file"
                               ? "file-limit " + std::to_string(file->size) + " x1"
                               : "ok");
        ++taken;
      } else {
        EXPECT_EQ(verdict, "tamper wrong-kind x1");
      }
    }
  }
  EXPECT_GE(taken, 20u);
}

}  // namespace
}  // namespace cordon::parser
