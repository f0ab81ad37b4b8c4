// The golden frames of protocols/vectors against the real agent: each legal message is answered or
// refused by an error, each illegal one costs its sender the connection and leaves its class in
// diag.
#include <fstream>
#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "common/channel/encoder.h"
#include "services/guest/agent-fixture.h"

namespace cordon::guest {
namespace {

using nlohmann::json;

class VectorsTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (!IsSkipped()) start();
  }
};

json vectors(const std::string& name) {
  std::ifstream file(std::string(CORDON_VECTORS) + "/" + name);
  return json::parse(file);
}

std::string fromHex(const std::string& hex) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16)));
  }
  return bytes;
}

// Pieces are hex text, or {"repeat": hex, "times": n}.
std::string bytesOf(const json& pieces) {
  std::string bytes;
  for (const json& piece : pieces) {
    if (piece.is_string()) {
      bytes += fromHex(piece);
    } else {
      for (int count = piece.at("times"); count > 0; --count) bytes += fromHex(piece.at("repeat"));
    }
  }
  return bytes;
}

// The vectors share one id; each goes out under one of its own, so that none replays another.
std::string underId(std::string frames, const channel::Id& id) {
  std::string shared = "\"id\":\"";
  std::size_t prefix = shared.size();
  for (int count = 0; count < 16; ++count) shared += "a1";
  std::size_t at = frames.find(shared + "\"");
  if (at != std::string::npos) frames.replace(at + prefix, 32, channel::toHex(id));
  return frames;
}

TEST_F(VectorsTest, EveryLegalMessageGetsItsKindOfReply) {
  const std::map<std::string, std::vector<std::string>> expected{
      {"ping", {"pong"}},
      {"exec", {"exec_result", "error"}},
      {"read_file", {"file_data", "error"}},
      {"write_file", {"ok", "error"}},
      {"poll", {"error"}},
      {"ack", {"ok"}},
      {"diag", {"diag_result"}}};
  std::map<std::string, int> seen;
  for (const json& vector : vectors("valid.json")) {
    std::string name = vector.at("name");
    std::string kind = vector.at("message").at("kind");
    channel::Id id = freshId();
    Fd socket = connect();
    ASSERT_TRUE(send(socket, underId(bytesOf(vector.at("frames")), id)));
    auto got = receive(socket);
    ASSERT_TRUE(got.message) << name;
    EXPECT_TRUE(got.cleanEnd) << name;
    if (underId(bytesOf(vector.at("frames")), id) != bytesOf(vector.at("frames"))) {
      EXPECT_EQ(got.message->id, id) << name;
    }
    std::string reply(got.message->kind());
    auto kinds = expected.find(kind);
    if (kinds == expected.end()) {
      EXPECT_EQ(got.as<channel::Error>().errnoName, "EPROTO") << name;
    } else {
      EXPECT_NE(std::find(kinds->second.begin(), kinds->second.end(), reply), kinds->second.end())
          << name << " got " << reply;
    }
    ++seen[kind];
  }
  EXPECT_EQ(seen.size(), 20U);
}

TEST_F(VectorsTest, EveryIllegalMessageEndsTheConnectionAndIsInDiag) {
  std::size_t refused = 0;
  for (const json& vector : vectors("invalid.json")) {
    // The caps of other readers: this one takes 256 MiB.
    if (vector.at("error") == "bulk-overrun") continue;
    std::string name = vector.at("name");
    std::string frames;
    if (vector.contains("control")) {
      std::string payload = vector.at("control");
      for (int shift = 24; shift >= 0; shift -= 8) {
        frames.push_back(static_cast<char>(payload.size() >> shift));
      }
      frames += "C" + payload;
    } else {
      frames = bytesOf(vector.at("frames"));
    }
    Fd socket = connect();
    // The agent may close before it has read all of it.
    (void)send(socket, frames);
    ::shutdown(socket.get(), SHUT_WR);
    auto got = receive(socket);
    EXPECT_FALSE(got.message) << name;
    channel::Diag two;
    two.maxEntries = 2;
    auto newest = ask(two).as<channel::DiagResult>().entries;
    ASSERT_EQ(newest.size(), 2U);
    const auto& entry = newest[0];  // the other one is diag's own request
    if (vector.at("error") == "closed") {
      EXPECT_NE(entry.event, "decode-failed") << name;
      continue;
    }
    EXPECT_EQ(entry.event, "decode-failed") << name;
    EXPECT_EQ(entry.detail, vector.at("error")) << name;
    EXPECT_EQ(entry.level, channel::DiagLevel::WARN) << name;
    ++refused;
  }
  EXPECT_GE(refused, 1000U);
}

TEST_F(VectorsTest, ADeclarationOver256MebibytesIsRefusedBeforeAnyBulk) {
  channel::WriteFile write;
  write.path = "large";
  write.dataSize = (256 << 20) + 1;
  Fd socket = connect();
  ASSERT_TRUE(send(socket, std::get<std::string>(channel::encodeControl({freshId(), write}))));
  EXPECT_FALSE(receive(socket).message);
  EXPECT_EQ(diagEntry("decode-failed")->detail, "bulk-overrun");
}

}  // namespace
}  // namespace cordon::guest
