#include "common/channel/fuzz/oracle.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <vector>

#include <simdjson.h>

namespace cordon::channel::fuzz {
namespace {

using simdjson::dom::element;

struct Refused {};

[[noreturn]] void refuse() {
  throw Refused{};
}
void require(bool condition) {
  if (!condition) refuse();
}

// simdjson 3.0 takes lone low surrogates as escapes; what it makes of them is no UTF-8. So all text
// is looked at again, by decoding to code points.
std::size_t codePoints(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++count) {
    const auto lead = static_cast<unsigned char>(text[i]);
    require(lead != 0);
    std::size_t more = 0;
    std::uint32_t point = lead;
    if (lead >= 0xf0) {
      more = 3;
      point = lead & 0x07u;
      require(lead < 0xf8);
    } else if (lead >= 0xe0) {
      more = 2;
      point = lead & 0x0fu;
    } else if (lead >= 0xc0) {
      more = 1;
      point = lead & 0x1fu;
    } else {
      require(lead < 0x80);
    }
    for (std::size_t j = 1; j <= more; ++j) {
      require(i + j < text.size() && (static_cast<unsigned char>(text[i + j]) & 0xc0u) == 0x80);
      point = point << 6 | (static_cast<unsigned char>(text[i + j]) & 0x3fu);
    }
    constexpr std::uint32_t LEAST[] = {0, 0x80, 0x800, 0x10000};
    require(point >= LEAST[more] && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff));
    i += more + 1;
  }
  return count;
}

std::string inQuotes(std::string_view text) {
  static const std::map<char, std::string> SHORT = {{'"', "\\\""}, {'\\', "\\\\"}, {'\b', "\\b"},
                                                    {'\f', "\\f"}, {'\n', "\\n"},  {'\r', "\\r"},
                                                    {'\t', "\\t"}};
  std::string out = "\"";
  for (const char c : text) {
    if (const auto found = SHORT.find(c); found != SHORT.end()) {
      out += found->second;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string joined(const std::map<std::string, std::string>& members) {
  std::string out = "{";
  for (const auto& [key, value] : members) {
    if (out.size() > 1) out += ',';
    out += inQuotes(key) + ":" + value;
  }
  return out + "}";
}

using Render = std::function<std::string(element)>;

std::string textOf(element value, std::size_t least = 0, std::size_t most = SIZE_MAX) {
  std::string_view text;
  require(value.get(text) == simdjson::SUCCESS);
  const std::size_t count = codePoints(text);
  require(count >= least && count <= most);
  return std::string(text);
}

Render text(std::size_t least = 0, std::size_t most = SIZE_MAX) {
  return [=](element value) { return inQuotes(textOf(value, least, most)); };
}

Render integer(std::int64_t least, std::int64_t most) {
  return [=](element value) {
    require(value.type() == simdjson::dom::element_type::INT64);
    std::int64_t number = 0;
    require(value.get(number) == simdjson::SUCCESS && number >= least && number <= most);
    return std::to_string(number);
  };
}

Render hex(std::size_t digits) {
  return [=](element value) {
    const std::string text = textOf(value);
    require(text.size() == digits &&
            text.find_first_not_of("0123456789abcdef") == std::string::npos);
    return inQuotes(text);
  };
}

Render word(std::initializer_list<std::string> words) {
  return [allowed = std::set<std::string>(words)](element value) {
    const std::string text = textOf(value);
    require(allowed.contains(text));
    return inQuotes(text);
  };
}

std::string flag(element value) {
  bool is = false;
  require(value.type() == simdjson::dom::element_type::BOOL && value.get(is) == simdjson::SUCCESS);
  return is ? "true" : "false";
}

Render list(const Render& render, std::size_t least, std::size_t most) {
  return [=](element value) {
    simdjson::dom::array array;
    require(value.get(array) == simdjson::SUCCESS);
    std::string out = "[";
    std::size_t count = 0;
    for (const element each : array) {
      if (count++ > 0) out += ',';
      out += render(each);
    }
    require(count >= least && count <= most);
    return out + "]";
  };
}

// The members of an object, each key once.
std::map<std::string, element> membersOf(element value) {
  simdjson::dom::object object;
  require(value.get(object) == simdjson::SUCCESS);
  std::map<std::string, element> members;
  for (const auto& [key, member] : object) {
    codePoints(key);
    require(members.emplace(std::string(key), member).second);
  }
  return members;
}

Render mapOf(const Render& render) {
  return [=](element value) {
    std::map<std::string, std::string> out;
    for (const auto& [key, member] : membersOf(value)) out[key] = render(member);
    return joined(out);
  };
}

// An object whose members are asked for one by one; finish() refuses what nobody asked for.
class Object {
 public:
  explicit Object(element value) : members(membersOf(value)) {}

  bool has(const std::string& key) const { return members.contains(key); }
  std::string peek(const std::string& key) {
    require(has(key));
    return textOf(members.at(key));
  }
  std::int64_t number(const std::string& key) {
    return out.contains(key) ? std::stoll(out.at(key)) : 0;
  }
  Object& must(const std::string& key, const Render& render) {
    require(has(key));
    return may(key, render);
  }
  Object& may(const std::string& key, const Render& render) {
    const auto member = members.extract(key);
    if (!member.empty()) out[key] = render(member.mapped());
    return *this;
  }
  Object& orElse(const std::string& key, const Render& render, const std::string& fallback) {
    if (!has(key)) out[key] = fallback;
    return may(key, render);
  }
  std::string finish() {
    require(members.empty());
    return joined(out);
  }

 private:
  std::map<std::string, element> members;
  std::map<std::string, std::string> out;
};

constexpr std::int64_t WIRE = 9007199254740992;
constexpr std::int64_t GIBIBYTE = 1073741824;
constexpr std::int64_t FOUR_HOURS = 14400000;

std::string budget(element value) {
  Object object(value);
  object.may("command_ms", integer(1, FOUR_HOURS))
      .may("channel_ms", integer(1, WIRE))
      .orElse("untimed_bound_ms", integer(1, WIRE), "14400000");
  require(object.number("command_ms") <= object.number("untimed_bound_ms"));
  return object.finish();
}

std::string diagEntry(element value) {
  return Object(value)
      .must("ts_ms", integer(0, WIRE))
      .must("level", word({"info", "warn", "error"}))
      .must("event", text(1, 128))
      .may("request_id", text(0, 64))
      .orElse("detail", text(0, 2048), "\"\"")
      .finish();
}

std::string errnoName(element value) {
  const std::string name = textOf(value);
  require(name.size() >= 2 && name.size() <= 16 && name[0] >= 'A' && name[0] <= 'Z');
  require(name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == std::string::npos);
  return inQuotes(name);
}

const Render SIZE = integer(0, GIBIBYTE);
const Render COUNT = integer(0, WIRE);
const Render ID = hex(32);
const Render GUESTS = mapOf(word({"pending", "booting", "ready", "failed"}));
const std::string DEFAULT_BUDGET = R"({"untimed_bound_ms":14400000})";

void judgeFields(const std::string& kind, Object& o) {
  if (kind == "exec") {
    o.must("cmd", list(text(), 1, SIZE_MAX))
        .may("cwd", text())
        .may("user", text())
        .may("data_size", SIZE);
    o.orElse("env", mapOf(text()), "{}").orElse("budget", budget, DEFAULT_BUDGET);
  } else if (kind == "read_file") {
    o.must("path", text(1)).may("max_bytes", SIZE).orElse("budget", budget, DEFAULT_BUDGET);
  } else if (kind == "write_file") {
    o.must("path", text(1)).may("mode", integer(0, 4095)).must("data_size", SIZE);
    o.orElse("budget", budget, DEFAULT_BUDGET);
  } else if (kind == "forward") {
    o.must("host", text(1))
        .must("port", integer(1, 65535))
        .orElse("budget", budget, DEFAULT_BUDGET);
  } else if (kind == "poll" || kind == "ack") {
    o.must("target_id", ID);
  } else if (kind == "diag") {
    o.orElse("max_entries", integer(1, 1000), "100");
  } else if (kind == "pong") {
    o.must("daemon", text(0, 128)).must("session", ID).orElse("protocol", integer(3, 3), "3");
  } else if (kind == "exec_result") {
    o.must("rc", integer(INT32_MIN, INT32_MAX)).must("stdout_size", SIZE).must("stderr_size", SIZE);
    o.orElse("stdout_truncated", flag, "false")
        .orElse("stderr_truncated", flag, "false")
        .may("data_size", SIZE);
    require(o.number("stdout_size") + o.number("stderr_size") == o.number("data_size"));
  } else if (kind == "file_data") {
    o.must("size", SIZE).orElse("truncated", flag, "false").may("data_size", SIZE);
    require(o.number("size") == o.number("data_size"));
  } else if (kind == "pending") {
    o.must("target_id", ID).must("elapsed_ms", COUNT);
  } else if (kind == "forward_ok") {
    o.must("handle", ID);
  } else if (kind == "diag_result") {
    o.must("entries", list(diagEntry, 0, 1000)).orElse("listener_restarts", COUNT, "0");
  } else if (kind == "error") {
    const std::string errnoText = o.peek("errno");
    const bool timedOut = errnoText == "ETIME" || errnoText == "ETIMEDOUT";
    require(!timedOut || o.has("layer"));
    require(timedOut || !o.has("partial"));
    o.must("errno", errnoName).must("message", text(0, 4096)).may("partial", text(0, 4096));
    o.may("layer", word({"command", "channel", "untimed", "transport"}));
  } else if (kind == "realize") {
    o.must("bundle_digest", hex(64)).orElse("grants", list(text(), 0, 64), "[]");
  } else if (kind == "stage") {
    o.must("stage", word({"fetch", "construct", "boot", "verify", "ready", "failed"}));
    o.orElse("detail", text(0, 4096), "\"\"").orElse("guests", GUESTS, "{}");
  } else if (kind == "heartbeat") {
    o.must("uptime_ms", COUNT).orElse("guests", GUESTS, "{}");
  } else {
    require(kind == "ping" || kind == "ok" || kind == "teardown");
  }
}

// The document does not tell -0 from 0, so the text must.
bool hasMinusZero(std::string_view payload) {
  bool inText = false;
  for (std::size_t i = 0; i < payload.size(); ++i) {
    if (inText && payload[i] == '\\') {
      ++i;
    } else if (payload[i] == '"') {
      inText = !inText;
    } else if (!inText && payload.substr(i, 2) == "-0") {
      return true;
    }
  }
  return false;
}

template <class Judge>
std::optional<std::string> judge(std::string_view payload, Judge&& judgeRoot) {
  static simdjson::dom::parser parser;
  element root;
  const simdjson::padded_string padded(payload);
  if (payload.starts_with("\xef\xbb\xbf") || hasMinusZero(payload)) return std::nullopt;
  if (parser.parse(padded).get(root) != simdjson::SUCCESS) return std::nullopt;
  try {
    return judgeRoot(root);
  } catch (const Refused&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> judgeControl(std::string_view payload) {
  return judge(payload, [](element root) {
    Object object(root);
    const std::string kind = object.peek("kind");
    object.must("id", ID).must("kind", text()).must("v", integer(3, 3));
    judgeFields(kind, object);
    return object.finish();
  });
}

std::optional<std::string> judgeEnd(std::string_view payload) {
  return judge(payload, [](element root) {
    return Object(root).must("sha256", hex(64)).must("size", SIZE).finish();
  });
}

}  // namespace cordon::channel::fuzz
