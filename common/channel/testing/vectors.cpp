#include "common/channel/testing/vectors.h"

#include <array>
#include <fstream>
#include <map>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace cordon::channel::testing {
namespace {

using Json = nlohmann::json;

// Messages are built here member by member, not by the codec: what the vectors test must not make
// what they expect.

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error("protocols/vectors: " + what);
}

std::string fromHex(const std::string& hex) {
  std::string bytes;
  if (hex.size() % 2 != 0) fail("odd hex");
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

template <std::size_t N>
std::array<std::uint8_t, N> arrayOf(const Json& hex) {
  const std::string bytes = fromHex(hex.get<std::string>());
  if (bytes.size() != N) fail("hex of another length");
  std::array<std::uint8_t, N> out{};
  for (std::size_t i = 0; i < N; ++i) out[i] = static_cast<std::uint8_t>(bytes[i]);
  return out;
}

Id idOf(const Json& hex) {
  return {arrayOf<16>(hex)};
}

// A list of hex strings and {"repeat": hex, "times": n}.
std::string bytesOf(const Json& parts) {
  std::string bytes;
  for (const Json& part : parts) {
    if (part.is_string()) {
      bytes += fromHex(part.get<std::string>());
      continue;
    }
    const std::string repeated = fromHex(part.at("repeat").get<std::string>());
    for (int i = part.at("times").get<int>(); i > 0; --i) bytes += repeated;
  }
  return bytes;
}

template <class T>
std::optional<T> maybe(const Json& fields, const char* name) {
  if (!fields.contains(name)) return std::nullopt;
  return fields.at(name).get<T>();
}

std::optional<std::int64_t> maybeInt(const Json& fields, const char* name) {
  return maybe<std::int64_t>(fields, name);
}
std::optional<std::string> maybeText(const Json& fields, const char* name) {
  return maybe<std::string>(fields, name);
}
std::int64_t intOf(const Json& fields, const char* name) {
  return fields.at(name).get<std::int64_t>();
}
std::string textOf(const Json& fields, const char* name) {
  return fields.at(name).get<std::string>();
}

Budget budgetOf(const Json& fields) {
  const Json& budget = fields.at("budget");
  return {.commandMs = maybeInt(budget, "command_ms"),
          .channelMs = maybeInt(budget, "channel_ms"),
          .untimedBoundMs = intOf(budget, "untimed_bound_ms")};
}

template <class Enum>
Enum wordOf(const Json& word, const std::map<std::string, Enum>& words) {
  return words.at(word.get<std::string>());
}

BudgetLayer layerOf(const Json& word) {
  return wordOf<BudgetLayer>(word, {{"command", BudgetLayer::COMMAND},
                                    {"channel", BudgetLayer::CHANNEL},
                                    {"untimed", BudgetLayer::UNTIMED},
                                    {"transport", BudgetLayer::TRANSPORT}});
}

std::map<std::string, GuestState> guestsOf(const Json& fields) {
  std::map<std::string, GuestState> guests;
  for (const auto& [guest, state] : fields.at("guests").items()) {
    guests[guest] = wordOf<GuestState>(state, {{"pending", GuestState::PENDING},
                                               {"booting", GuestState::BOOTING},
                                               {"ready", GuestState::READY},
                                               {"failed", GuestState::FAILED}});
  }
  return guests;
}

DiagEntry entryOf(const Json& entry) {
  return {.tsMs = intOf(entry, "ts_ms"),
          .level = wordOf<DiagLevel>(
              entry.at("level"),
              {{"info", DiagLevel::INFO}, {"warn", DiagLevel::WARN}, {"error", DiagLevel::ERROR}}),
          .event = textOf(entry, "event"),
          .requestId = maybeText(entry, "request_id"),
          .detail = textOf(entry, "detail")};
}

Body bodyOf(const Json& m) {
  const std::string kind = textOf(m, "kind");
  if (kind == "ping") return Ping{};
  if (kind == "exec") {
    return Exec{.cmd = m.at("cmd").get<std::vector<std::string>>(),
                .cwd = maybeText(m, "cwd"),
                .env = m.at("env").get<std::map<std::string, std::string>>(),
                .user = maybeText(m, "user"),
                .budget = budgetOf(m),
                .dataSize = maybeInt(m, "data_size")};
  }
  if (kind == "read_file") {
    return ReadFile{
        .path = textOf(m, "path"), .maxBytes = maybeInt(m, "max_bytes"), .budget = budgetOf(m)};
  }
  if (kind == "write_file") {
    return WriteFile{.path = textOf(m, "path"),
                     .mode = maybeInt(m, "mode"),
                     .budget = budgetOf(m),
                     .dataSize = intOf(m, "data_size")};
  }
  if (kind == "forward") {
    return Forward{.host = textOf(m, "host"), .port = intOf(m, "port"), .budget = budgetOf(m)};
  }
  if (kind == "poll") return Poll{idOf(m.at("target_id"))};
  if (kind == "ack") return Ack{idOf(m.at("target_id"))};
  if (kind == "diag") return Diag{intOf(m, "max_entries")};
  if (kind == "pong") {
    return Pong{.daemon = textOf(m, "daemon"),
                .protocol = intOf(m, "protocol"),
                .session = idOf(m.at("session"))};
  }
  if (kind == "exec_result") {
    return ExecResult{.rc = intOf(m, "rc"),
                      .stdoutSize = intOf(m, "stdout_size"),
                      .stderrSize = intOf(m, "stderr_size"),
                      .stdoutTruncated = m.at("stdout_truncated").get<bool>(),
                      .stderrTruncated = m.at("stderr_truncated").get<bool>(),
                      .dataSize = maybeInt(m, "data_size")};
  }
  if (kind == "file_data") {
    return FileData{.size = intOf(m, "size"),
                    .truncated = m.at("truncated").get<bool>(),
                    .dataSize = maybeInt(m, "data_size")};
  }
  if (kind == "ok") return Ok{};
  if (kind == "pending") {
    return Pending{.targetId = idOf(m.at("target_id")), .elapsedMs = intOf(m, "elapsed_ms")};
  }
  if (kind == "forward_ok") return ForwardOk{idOf(m.at("handle"))};
  if (kind == "diag_result") {
    DiagResult result{.entries = {}, .listenerRestarts = intOf(m, "listener_restarts")};
    for (const Json& entry : m.at("entries")) result.entries.push_back(entryOf(entry));
    return result;
  }
  if (kind == "error") {
    Error error{.errnoName = textOf(m, "errno"),
                .message = textOf(m, "message"),
                .partial = maybeText(m, "partial")};
    if (m.contains("layer")) error.layer = layerOf(m.at("layer"));
    return error;
  }
  if (kind == "realize") {
    return Realize{.bundleDigest = arrayOf<32>(m.at("bundle_digest")),
                   .grants = m.at("grants").get<std::vector<std::string>>()};
  }
  if (kind == "teardown") return Teardown{};
  if (kind == "stage") {
    return StageReport{.stage = wordOf<Stage>(m.at("stage"), {{"fetch", Stage::FETCH},
                                                              {"construct", Stage::CONSTRUCT},
                                                              {"boot", Stage::BOOT},
                                                              {"verify", Stage::VERIFY},
                                                              {"ready", Stage::READY},
                                                              {"failed", Stage::FAILED}}),
                       .detail = textOf(m, "detail"),
                       .guests = guestsOf(m)};
  }
  if (kind == "heartbeat") {
    return Heartbeat{.uptimeMs = intOf(m, "uptime_ms"), .guests = guestsOf(m)};
  }
  fail("unknown kind " + kind);
}

DecodeError errorOf(const std::string& word) {
  for (int i = 0; i <= static_cast<int>(DecodeError::CLOSED); ++i) {
    if (name(static_cast<DecodeError>(i)) == word) return static_cast<DecodeError>(i);
  }
  fail("unknown error " + word);
}

std::string controlFrame(const std::string& payload) {
  const auto byte = [&](int shift) { return static_cast<char>(payload.size() >> shift & 0xff); };
  return std::string{byte(24), byte(16), byte(8), byte(0), 'C'} + payload;
}

Json load(const std::string& file) {
  const std::string path = std::string(CORDON_VECTORS) + "/" + file;
  std::ifstream in(path);
  if (!in) fail("cannot open " + path);
  return Json::parse(in);
}

}  // namespace

std::vector<ValidVector> validVectors() {
  std::vector<ValidVector> vectors;
  for (const Json& entry : load("valid.json")) {
    const Json& message = entry.at("message");
    vectors.push_back({.name = textOf(entry, "name"),
                       .message = {.id = idOf(message.at("id")), .body = bodyOf(message)},
                       .bulk = entry.contains("bulk") ? bytesOf(entry.at("bulk")) : "",
                       .bytes = bytesOf(entry.at("frames")),
                       .canonical = entry.at("canonical").get<bool>()});
  }
  return vectors;
}

std::vector<InvalidVector> invalidVectors() {
  std::vector<InvalidVector> vectors;
  for (const Json& entry : load("invalid.json")) {
    vectors.push_back(
        {.name = textOf(entry, "name"),
         .bytes = entry.contains("control") ? controlFrame(textOf(entry, "control"))
                                            : bytesOf(entry.at("frames")),
         .bulkCap = maybe<std::uint64_t>(entry, "bulk_cap").value_or(DEFAULT_BULK_CAP),
         .error = errorOf(textOf(entry, "error"))});
  }
  return vectors;
}

std::string show(std::string_view bytes) {
  constexpr std::size_t MOST = 400;
  std::string out;
  for (const char c : bytes.substr(0, MOST)) {
    if (c >= ' ' && c <= '~') {
      out.push_back(c);
    } else {
      constexpr std::string_view DIGITS = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      out += {'\\', 'x', DIGITS[byte >> 4], DIGITS[byte & 15]};
    }
  }
  return bytes.size() > MOST ? out + "… (" + std::to_string(bytes.size()) + " bytes)" : out;
}

}  // namespace cordon::channel::testing
