#include "common/channel/json-writer.h"

#include <charconv>
#include <map>
#include <vector>

namespace cordon::channel {
namespace {

void write(std::string& out, std::string_view text) {
  constexpr std::string_view DIGITS = "0123456789abcdef";
  out.push_back('"');
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (const auto byte = static_cast<unsigned char>(c); byte < 0x20) {
          out += "\\u00";
          out.push_back(DIGITS[byte >> 4]);
          out.push_back(DIGITS[byte & 15]);
        } else {
          out.push_back(c);
        }
    }
  }
  out.push_back('"');
}

void write(std::string& out, const std::string& text) {
  write(out, std::string_view(text));
}

void write(std::string& out, std::int64_t value) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

void write(std::string& out, bool value) {
  out += value ? "true" : "false";
}
void write(std::string& out, const Id& id) {
  write(out, toHex(id));
}
void write(std::string& out, const Sha256& digest) {
  write(out, toHex(digest));
}

template <class T>
requires std::is_enum_v<T>
void write(std::string& out, T value) {
  write(out, WORDS<T>[static_cast<std::size_t>(value)]);
}

// Separates members and elements by commas.
class Separator {
 public:
  explicit Separator(std::string& target) : out(target) {}
  void next() {
    if (any) out.push_back(',');
    any = true;
  }
  void member(std::string_view name) {
    next();
    write(out, name);
    out.push_back(':');
  }

 private:
  std::string& out;
  bool any = false;
};

template <HasSchema T>
void write(std::string& out, const T& value);

template <class T>
void write(std::string& out, const std::vector<T>& list) {
  out.push_back('[');
  Separator separator(out);
  for (const T& element : list) {
    separator.next();
    write(out, element);
  }
  out.push_back(']');
}

// std::map's order is by bytes, which for UTF-8 is the order by code points that the protocol asks
// for.
template <class T>
void write(std::string& out, const std::map<std::string, T>& map) {
  out.push_back('{');
  Separator separator(out);
  for (const auto& [key, value] : map) {
    separator.member(key);
    write(out, value);
  }
  out.push_back('}');
}

template <class T>
void writeMember(std::string& out, Separator& separator, std::string_view name, const T& value) {
  if constexpr (IS_OPTIONAL<T>) {
    if (value) writeMember(out, separator, name, *value);
  } else {
    separator.member(name);
    write(out, value);
  }
}

template <HasSchema T>
void write(std::string& out, const T& value) {
  out.push_back('{');
  Separator separator(out);
  eachField<T>([&](const auto& field) {
    writeMember(out, separator, field.name, value.*field.member);
    return true;
  });
  out.push_back('}');
}

template <class T>
void writeKind(std::string& out, const Id& id, const T& body) {
  Separator separator(out);
  // The three common members in their order, each written once its place among the kind's own has
  // come.
  constexpr auto COMMON = std::to_array<std::string_view>({"id", "kind", "v"});
  std::size_t written = 0;
  const auto commonUpTo = [&](std::string_view name) {
    for (; written < COMMON.size() && COMMON[written] < name; ++written) {
      if (written == 0) writeMember(out, separator, COMMON[written], id);
      if (written == 1) writeMember(out, separator, COMMON[written], Schema<T>::KIND);
      if (written == 2) writeMember(out, separator, COMMON[written], PROTOCOL_VERSION);
    }
  };
  out.push_back('{');
  eachField<T>([&](const auto& field) {
    commonUpTo(field.name);
    writeMember(out, separator, field.name, body.*field.member);
    return true;
  });
  commonUpTo("\x7f");
  out.push_back('}');
}

}  // namespace

std::string writeControl(const Message& message) {
  std::string out;
  std::visit([&](const auto& body) { writeKind(out, message.id, body); }, message.body);
  return out;
}

std::string writeEnd(const End& end) {
  std::string out;
  write(out, end);
  return out;
}

}  // namespace cordon::channel
