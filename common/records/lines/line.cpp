#define JSON_NO_IO 1
#include "common/records/lines/line.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/channel/text.h"
#include "common/records/lines/limits.h"

namespace cordon::records {
namespace {

using Json = nlohmann::json;

constexpr std::string_view BOM = "\xef\xbb\xbf";

bool isC1(std::string_view sequence) {
  return sequence.size() == 2 && sequence[0] == '\xc2' &&
         static_cast<unsigned char>(sequence[1]) < 0xa0;
}

// Of well-formed UTF-8.
bool hasControl(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7f || isC1(text.substr(i, 2))) return true;
  }
  return false;
}

// Whether bytes may follow with which `tail` is one character.
bool isBegun(std::string_view tail) {
  // Of the second bytes that a first one allows, either the lowest or the highest of all is one.
  for (const char next : {'\x80', '\xbf'}) {
    if (channel::sequenceLength(std::string(tail).append(3, next)) > tail.size()) return true;
  }
  return false;
}

struct Forbidden {
  std::size_t at = 0;
  Reason reason = Reason::NONE;
};

// The first character that no line may hold. The parser is shown what stands before it: it would
// skip a byte-order mark, take NUL for the end, and has no objection to CR, DEL or C1. Whether a
// character stands inside a string is right up to the first fault of grammar, which the parser
// finds.
Forbidden firstForbidden(std::string_view line, bool isCut) {
  if (line.starts_with(BOM)) return {0, Reason::BYTE_ORDER_MARK};
  bool inString = false;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t length = channel::sequenceLength(line.substr(at));
    if (length == 0) {
      if (isCut && isBegun(line.substr(at))) break;
      return {at, Reason::NOT_UTF8};
    }
    switch (line[at]) {
      case '\0':
        return {at, Reason::NUL_BYTE};
      case '\r':
        return {at, Reason::CARRIAGE_RETURN};
      case '"':
        inString = !inString;
        break;
      case '\\':
        if (inString && at + 1 < line.size() && (line[at + 1] == '"' || line[at + 1] == '\\')) ++at;
        break;
      default:
        if (inString && (line[at] == '\x7f' || isC1(line.substr(at, length))))
          return {at, Reason::CONTROL_CHARACTER};
    }
    at += length;
  }
  return {line.size(), isCut ? Reason::LINE_TOO_LONG : Reason::NONE};
}

// nlohmann's SAX interface; its names are the library's, and returning false ends the parse. After
// a violation of the schema it goes on for the sake of the depth alone.
class Filler {
 public:
  Filler(std::span<const Field> outermost, void* value) : table(outermost), to(value) {}

  Reason violation = Reason::NONE;
  std::size_t faultAt = 0;  // bytes read when the grammar was broken; 0: it was not

  bool null() { return place() == nullptr || outside(Reason::WRONG_TYPE); }
  bool boolean(bool value) {
    const Field* field = place();
    if (field == nullptr) return true;
    if (field->flag == nullptr) return outside(Reason::WRONG_TYPE);
    return field->flag(to, value) || outside(Reason::WRONG_VALUE);
  }
  bool number_integer(Json::number_integer_t value) {
    if (value < -MAX_LINE_INTEGER) return broken(Reason::INTEGER_RANGE);
    return integer(value);
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    if (value > static_cast<Json::number_unsigned_t>(MAX_LINE_INTEGER))
      return broken(Reason::INTEGER_RANGE);
    return integer(static_cast<std::int64_t>(value));
  }
  // A fraction, an exponent, or an integer beyond 64 bits, which the lexer turns into a double.
  bool number_float(Json::number_float_t, const std::string& token) {
    return broken(reasonOfNumber(token));
  }
  bool string(std::string& value) {
    if (hasNul(value)) return broken(Reason::NUL_BYTE);
    const Field* field = place();
    if (field == nullptr) return true;
    if (field->text == nullptr) return outside(Reason::WRONG_TYPE);
    if (!field->controls && hasControl(value)) return outside(Reason::CONTROL_CHARACTER);
    if (value.size() > field->maxBytes) return outside(Reason::TEXT_TOO_LONG);
    return field->text(to, value) || outside(Reason::WRONG_VALUE);
  }
  bool binary(Json::binary_t&) { return false; }  // of other formats than JSON
  bool start_object(std::size_t) {
    if (++depth > MAX_LINE_DEPTH) return tooDeep();
    if (isOutside()) return true;
    if (used == 0) {
      frames[used++] = {table};
      return true;
    }
    const Field* field = place();
    if (field->open == nullptr) return outside(Reason::WRONG_TYPE);
    frames[used++] = {field->members};
    return field->open(to) || outside(Reason::WRONG_VALUE);
  }
  bool key(std::string& name) {
    if (hasNul(name)) return broken(Reason::NUL_BYTE);
    if (isOutside()) return true;
    Frame& frame = top();
    const auto field = std::ranges::find(frame.members, name, &Field::name);
    if (field == frame.members.end()) return outside(Reason::UNKNOWN_KEY);
    const std::uint32_t bit = 1u << (field - frame.members.begin());
    if ((frame.seen & bit) != 0) return broken(Reason::DUPLICATE_KEY);
    frame.seen |= bit;
    frame.next = &*field;
    return true;
  }
  bool end_object() {
    --depth;
    if (isOutside()) return true;
    const Frame& frame = top();
    --used;
    std::uint32_t bit = 1;
    for (const Field& field : frame.members) {
      if (field.required && (frame.seen & bit) == 0) return outside(Reason::MISSING_KEY);
      bit <<= 1;
    }
    return true;
  }
  bool start_array(std::size_t) {
    if (++depth > MAX_LINE_DEPTH) return tooDeep();
    const Field* field = place();
    if (field == nullptr) return true;
    if (field->element == nullptr || isList()) return outside(Reason::WRONG_TYPE);
    frames[used++] = {.members = {}, .list = field};
    return true;
  }
  bool end_array() {
    --depth;
    if (isOutside()) return true;
    const Frame& frame = top();
    --used;
    return frame.count == frame.list->elements || outside(Reason::WRONG_VALUE);
  }
  bool parse_error(std::size_t position, const std::string& token, const Json::exception& error) {
    constexpr int NUMBER_OVERFLOW = 406;
    if (error.id == NUMBER_OVERFLOW) {
      broken(reasonOfNumber(token));
    } else {
      faultAt = position;
    }
    return false;
  }

 private:
  struct Frame {
    std::span<const Field> members;
    std::uint32_t seen = 0;  // a bit each
    const Field* next = nullptr;
    const Field* list = nullptr;
    std::size_t count = 0;  // elements of the list so far
  };
  static constexpr Field NO_VALUE{.name = {}};

  static bool hasNul(const std::string& text) { return text.find('\0') != std::string::npos; }
  static Reason reasonOfNumber(const std::string& token) {
    return token.find_first_of(".eE") == std::string::npos ? Reason::INTEGER_RANGE
                                                           : Reason::NOT_INTEGER;
  }

  [[nodiscard]] bool isOutside() const { return violation != Reason::NONE; }
  // The schema has no place for this.
  bool outside(Reason reason) {
    violation = reason;
    return true;
  }
  // This is not JSON as we take it.
  bool broken(Reason reason) {
    if (isOutside()) return true;
    violation = reason;
    return false;
  }
  bool tooDeep() {
    violation = Reason::TOO_DEEP;
    return false;
  }
  [[nodiscard]] bool isList() const { return used > 0 && frames.at(used - 1).list != nullptr; }
  Frame& top() { return frames.at(used - 1); }
  // Whose value comes now; null once the schema was left.
  const Field* place() {
    if (isOutside()) return nullptr;
    if (used == 0) return &NO_VALUE;
    Frame& frame = top();
    return frame.list != nullptr ? frame.list : frame.next;
  }
  bool integer(std::int64_t value) {
    const Field* field = place();
    if (field == nullptr) return true;
    if (isList()) {
      Frame& frame = top();
      if (frame.count == field->elements) return outside(Reason::WRONG_VALUE);
      return field->element(to, frame.count++, value) || outside(Reason::WRONG_VALUE);
    }
    if (field->integer == nullptr) return outside(Reason::WRONG_TYPE);
    return field->integer(to, value) || outside(Reason::WRONG_VALUE);
  }

  std::span<const Field> table;
  void* to;
  std::array<Frame, 3> frames;  // as deep as tables go: an object or a list in the outermost object
  std::size_t used = 0;
  int depth = 0;
};

}  // namespace

Reason readLine(std::string_view line, bool isCut, std::span<const Field> table, void* to) {
  const Forbidden forbidden = firstForbidden(line, isCut);
  const std::string_view seen = line.substr(0, forbidden.at);
  Filler filler(table, to);
  const bool isWhole = Json::sax_parse(seen.begin(), seen.end(), &filler);
  if (filler.violation != Reason::NONE) return filler.violation;
  // The end counts as a byte read: a fault there says that the text would have gone on.
  const bool ranOut = filler.faultAt > seen.size();
  if (isWhole || (ranOut && forbidden.reason != Reason::NONE)) return forbidden.reason;
  return Reason::NOT_JSON;
}

Status statusOf(Reason reason) {
  switch (reason) {
    case Reason::NONE:
      return Status::OK;
    case Reason::NOT_UTF8:
    case Reason::TOO_DEEP:
    case Reason::NOT_JSON:
    case Reason::BYTE_ORDER_MARK:
    case Reason::NUL_BYTE:
    case Reason::CARRIAGE_RETURN:
    case Reason::DUPLICATE_KEY:
    case Reason::NOT_INTEGER:
    case Reason::INTEGER_RANGE:
      return Status::UNPARSABLE;
    default:
      return Status::REFUSED;
  }
}

}  // namespace cordon::records
