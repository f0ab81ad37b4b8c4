#include "common/records/lines/fuzz/oracle.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace cordon::records::fuzz {
namespace {

using simdjson::dom::element_type;

constexpr std::int64_t MOST = 9007199254740991;

// simdjson 3.0 takes lone low surrogates as escapes and makes of them what is no UTF-8.
struct Malformed {};

struct Points {
  bool nul = false;
  bool control = false;
};

Points pointsOf(std::string_view bytes) {
  Points points;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    const auto next = i + 1 < bytes.size() ? static_cast<unsigned char>(bytes[i + 1]) : 0u;
    if (byte == 0xed && next >= 0xa0) throw Malformed{};
    points.nul = points.nul || byte == 0;
    points.control = points.control || byte < 0x20 || byte == 0x7f ||
                     (byte == 0xc2 && next >= 0x80 && next <= 0x9f);
  }
  return points;
}

// What is wrong with a value before anybody asks for its type.
Judged judgeAlone(element value) {
  switch (value.type()) {
    case element_type::DOUBLE:
    case element_type::UINT64:
      return Judged::UNPARSABLE;
    case element_type::INT64: {
      const std::int64_t number = value.get_int64();
      return number >= -MOST && number <= MOST ? Judged::GOOD : Judged::UNPARSABLE;
    }
    case element_type::STRING:
      return pointsOf(value.get_string().value()).nul ? Judged::UNPARSABLE : Judged::GOOD;
    default:
      return Judged::GOOD;
  }
}

Judged judged(bool good) {
  return good ? Judged::GOOD : Judged::REFUSED;
}

// A check of scalars of one type.
template <class F>
Check scalar(element_type type, F&& take) {
  return [type, take = std::forward<F>(take)](element value) {
    if (const Judged alone = judgeAlone(value); alone != Judged::GOOD) return alone;
    return judged(value.type() == type && take(value));
  };
}

int depthOf(element value) {
  int deepest = 0;
  if (value.is_array()) {
    for (const element each : value.get_array()) deepest = std::max(deepest, depthOf(each));
  } else if (value.is_object()) {
    for (const auto field : value.get_object()) deepest = std::max(deepest, depthOf(field.value));
  } else {
    return 0;
  }
  return deepest + 1;
}

// Somewhere in the text of JSON, so inside a string.
bool hasRawControl(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x7f') return true;
    if (line[i] == '\xc2' && static_cast<unsigned char>(line[i + 1]) < 0xa0) return true;
  }
  return false;
}

}  // namespace

Check text(std::function<bool(std::string_view)> take, bool controls, std::size_t most) {
  return scalar(element_type::STRING, [=](element value) {
    const std::string_view bytes = value.get_string();
    return (controls || !pointsOf(bytes).control) && bytes.size() <= most && take(bytes);
  });
}

Check integer(std::function<bool(std::int64_t)> take) {
  return scalar(element_type::INT64, [=](element value) { return take(value.get_int64()); });
}

Check flag(std::function<void(bool)> take) {
  return scalar(element_type::BOOL, [=](element value) {
    take(value.get_bool());
    return true;
  });
}

Check pair(std::function<void(std::size_t, std::int64_t)> take) {
  return [take](element value) {
    if (const Judged alone = judgeAlone(value); alone != Judged::GOOD) return alone;
    if (!value.is_array()) return Judged::REFUSED;
    std::size_t index = 0;
    for (const element each : value.get_array()) {
      const Judged one = integer([&](std::int64_t number) {
        if (index < 2) take(index, number);
        return index++ < 2;
      })(each);
      if (one != Judged::GOOD) return one;
    }
    return judged(index == 2);
  };
}

Check object(const Spec& spec) {
  return [&spec](element value) {
    if (const Judged alone = judgeAlone(value); alone != Judged::GOOD) return alone;
    if (!value.is_object()) return Judged::REFUSED;
    std::set<std::string> seen;
    for (const auto field : value.get_object()) {
      const std::string key(field.key);
      if (pointsOf(key).nul) return Judged::UNPARSABLE;
      const auto member = spec.members.find(key);
      if (member == spec.members.end()) return Judged::REFUSED;
      if (!seen.insert(key).second) return Judged::UNPARSABLE;
      if (const Judged one = member->second(field.value); one != Judged::GOOD) return one;
    }
    return judged(std::ranges::all_of(spec.members, [&](const auto& member) {
      return seen.contains(member.first) || spec.optional.contains(member.first);
    }));
  };
}

Judged judgeLine(std::string_view line, const Spec& spec) {
  if (line.size() > 65536) return Judged::BAD;
  simdjson::dom::parser parser;
  element root;
  if (parser.parse(simdjson::padded_string(line)).get(root) != simdjson::SUCCESS)
    return Judged::BAD;
  if (line.find('\r') != std::string_view::npos || hasRawControl(line)) return Judged::BAD;
  try {
    const Judged result = object(spec)(root);
    return result == Judged::REFUSED && depthOf(root) > 16 ? Judged::UNPARSABLE : result;
  } catch (const Malformed&) {
    return Judged::BAD;
  }
}

bool isHex(std::string_view text, std::size_t digits) {
  return text.size() == digits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

FileJudged judgeFile(std::string_view file, const Spec& spec, const std::function<void()>& take) {
  FileJudged result;
  while (!file.empty()) {
    const std::size_t end = file.find('\n');
    if (end == std::string_view::npos && file.size() <= 65536) {
      result.torn = true;
      break;
    }
    result.judged = judgeLine(file.substr(0, end), spec);
    if (result.judged != Judged::GOOD) {
      result.line = result.records + 1;
      break;
    }
    ++result.records;
    take();
    file.remove_prefix(end + 1);
  }
  return result;
}

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

}  // namespace cordon::records::fuzz
