// The guest agent is a small static binary: no streams.
#define JSON_NO_IO 1
#include "common/channel/json-reader.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/channel/legal.h"

namespace cordon::channel {
namespace {

using Json = nlohmann::json;

// ---- where a value goes ----

struct Verbs;

// A value of some C++ type that waits for its JSON. An empty one refuses.
struct Place {
  void* to = nullptr;
  const Verbs* verbs = nullptr;
  explicit operator bool() const { return to != nullptr; }
};

// Which fields of a struct came already, a bit each.
using Seen = std::uint32_t;

// What a type does with each kind of JSON value; a null verb is a type error.
struct Verbs {
  bool (*text)(void* to, std::string& value) = nullptr;
  bool (*integer)(void* to, std::int64_t value) = nullptr;
  bool (*flag)(void* to, bool value) = nullptr;
  // Objects: the place of a member, empty for an unknown or repeated key; then whether all came
  // that must.
  Place (*member)(void* to, std::string& key, Seen& seen) = nullptr;
  bool (*complete)(Seen seen) = nullptr;
  // Lists: the place of one more element.
  Place (*element)(void* to) = nullptr;
};

template <class T>
struct Shape;

template <class T>
const Verbs& verbsOf() {
  using S = Shape<T>;
  static constexpr Verbs VERBS = [] {
    Verbs verbs;
    if constexpr (requires { &S::text; }) {
      verbs.text = [](void* to, std::string& value) {
        return S::text(*static_cast<T*>(to), value);
      };
    }
    if constexpr (requires { &S::integer; }) {
      verbs.integer = [](void* to, std::int64_t value) {
        return S::integer(*static_cast<T*>(to), value);
      };
    }
    if constexpr (requires { &S::flag; }) {
      verbs.flag = [](void* to, bool value) { return S::flag(*static_cast<T*>(to), value); };
    }
    if constexpr (requires { &S::member; }) {
      verbs.member = [](void* to, std::string& key, Seen& seen) {
        return S::member(*static_cast<T*>(to), key, seen);
      };
      verbs.complete = [](Seen seen) { return S::complete(seen); };
    }
    if constexpr (requires { &S::element; }) {
      verbs.element = [](void* to) { return S::element(*static_cast<T*>(to)); };
    }
    return verbs;
  }();
  return VERBS;
}

template <class T>
Place placeOf(T& value) {
  return {&value, &verbsOf<T>()};
}

template <class T>
Place placeOf(std::optional<T>& value) {
  return placeOf(value.emplace());
}

template <>
struct Shape<std::string> {
  static bool text(std::string& to, std::string& value) {
    to = std::move(value);
    return true;
  }
};

template <>
struct Shape<std::int64_t> {
  static bool integer(std::int64_t& to, std::int64_t value) {
    to = value;
    return true;
  }
};

template <>
struct Shape<bool> {
  static bool flag(bool& to, bool value) {
    to = value;
    return true;
  }
};

template <>
struct Shape<Id> {
  static bool text(Id& to, std::string& value) {
    const auto id = idFromHex(value);
    if (id) to = *id;
    return id.has_value();
  }
};

template <>
struct Shape<Sha256> {
  static bool text(Sha256& to, std::string& value) {
    const auto digest = sha256FromHex(value);
    if (digest) to = *digest;
    return digest.has_value();
  }
};

template <class T>
requires std::is_enum_v<T>
struct Shape<T> {
  static bool text(T& to, std::string& value) {
    const auto word = std::find(WORDS<T>.begin(), WORDS<T>.end(), value);
    if (word == WORDS<T>.end()) return false;
    to = static_cast<T>(word - WORDS<T>.begin());
    return true;
  }
};

template <class T>
struct Shape<std::vector<T>> {
  static Place element(std::vector<T>& to) { return placeOf(to.emplace_back()); }
};

template <class T>
struct Shape<std::map<std::string, T>> {
  static Place member(std::map<std::string, T>& to, std::string& key, Seen&) {
    const auto [entry, isNew] = to.try_emplace(std::move(key));
    return isNew ? placeOf(entry->second) : Place{};
  }
  static bool complete(Seen) { return true; }
};

template <HasSchema T>
struct Shape<T> {
  static constexpr std::size_t SIZE =
      std::tuple_size_v<std::remove_cvref_t<decltype(Schema<T>::FIELDS)>>;
  static constexpr Seen REQUIRED = [] {
    Seen bits = 0;
    std::size_t index = 0;
    eachField<T>([&](const auto& field) {
      if (field.required) bits |= Seen{1} << index;
      ++index;
      return true;
    });
    return bits;
  }();

  static Place member(T& to, std::string& key, Seen& seen) {
    Place place;
    std::size_t index = 0;
    eachField<T>([&](const auto& field) {
      const Seen bit = Seen{1} << index++;
      if (field.name != key) return true;
      if ((seen & bit) == 0) place = placeOf(to.*field.member);
      seen |= bit;
      return false;
    });
    return place;
  }
  static bool complete(Seen seen) { return (seen & REQUIRED) == REQUIRED; }
};

// A message of kind T: its own fields beside the three that all kinds share.
template <class T>
struct Envelope {
  Id& id;
  T& body;
  std::string kind;
  std::int64_t version = 0;
};

template <class T>
struct Shape<Envelope<T>> {
  static constexpr Seen ID = Seen{1} << 31;
  static constexpr Seen KIND = Seen{1} << 30;
  static constexpr Seen VERSION = Seen{1} << 29;
  static_assert(Shape<T>::SIZE < 29);

  static Place member(Envelope<T>& to, std::string& key, Seen& seen) {
    const auto once = [&](Seen bit, Place place) {
      return std::exchange(seen, seen | bit) & bit ? Place{} : place;
    };
    if (key == "id") return once(ID, placeOf(to.id));
    if (key == "kind") return once(KIND, placeOf(to.kind));
    if (key == "v") return once(VERSION, placeOf(to.version));
    return Shape<T>::member(to.body, key, seen);
  }
  static bool complete(Seen seen) {
    constexpr Seen ALL = ID | KIND | VERSION;
    return (seen & ALL) == ALL && Shape<T>::complete(seen);
  }
};

// ---- nlohmann's SAX interface ----
// Returning false ends the parse at once. Its names are the library's.

bool hasNul(const std::string& text) {
  return text.find('\0') != std::string::npos;
}

// Fills the place of the outermost object. What has no place, a wrong type or a second coming is
// refused, so the depth is bounded by the schema's.
class Filler {
 public:
  explicit Filler(Place outermost) : root(outermost) {}

  bool null() { return false; }
  bool boolean(bool value) {
    const Place place = next();
    return place && place.verbs->flag != nullptr && place.verbs->flag(place.to, value);
  }
  bool number_integer(Json::number_integer_t value) {
    // The lexer comes here for a leading '-' only, so 0 is "-0".
    return value != 0 && integer(value);
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    return std::in_range<std::int64_t>(value) && integer(static_cast<std::int64_t>(value));
  }
  // A fraction, an exponent, or an integer beyond 64 bits, which the lexer turns into a double.
  bool number_float(Json::number_float_t, const std::string&) { return false; }
  bool string(std::string& value) {
    if (hasNul(value)) return false;
    const Place place = next();
    return place && place.verbs->text != nullptr && place.verbs->text(place.to, value);
  }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) {
    const Place place = next();
    return place && place.verbs->member != nullptr && push(place);
  }
  bool key(std::string& name) {
    if (hasNul(name)) return false;
    Frame& frame = frames.back();
    frame.next = frame.container.verbs->member(frame.container.to, name, frame.seen);
    return static_cast<bool>(frame.next);
  }
  bool end_object() {
    const bool complete = frames.back().container.verbs->complete(frames.back().seen);
    frames.pop_back();
    return complete;
  }
  bool start_array(std::size_t) {
    const Place place = next();
    return place && place.verbs->element != nullptr && push(place);
  }
  bool end_array() {
    frames.pop_back();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) { return false; }

 private:
  struct Frame {
    Place container;
    Place next;  // objects only
    Seen seen = 0;
  };

  Place next() {
    if (frames.empty()) return std::exchange(root, Place{});
    Frame& frame = frames.back();
    if (frame.container.verbs->element != nullptr)
      return frame.container.verbs->element(frame.container.to);
    return std::exchange(frame.next, Place{});
  }
  bool integer(std::int64_t value) {
    const Place place = next();
    return place && place.verbs->integer != nullptr && place.verbs->integer(place.to, value);
  }
  bool push(Place container) {
    if (frames.size() >= MAX_JSON_DEPTH) return false;
    frames.push_back({container, {}, 0});
    return true;
  }

  Place root;
  std::vector<Frame> frames;
};

// Finds the member `kind` of the outermost object. Needed before the rest can be placed, since
// members come in any order; all else is judged by Filler afterwards.
class KindFinder {
 public:
  std::optional<std::string> found;

  bool null() { return skip(); }
  bool boolean(bool) { return skip(); }
  bool number_integer(Json::number_integer_t) { return skip(); }
  bool number_unsigned(Json::number_unsigned_t) { return skip(); }
  bool number_float(Json::number_float_t, const std::string&) { return skip(); }
  bool string(std::string& value) {
    if (!isNext) return skip();
    found = std::move(value);
    return false;
  }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return !isNext && ++depth <= MAX_JSON_DEPTH; }
  bool key(std::string& name) {
    isNext = depth == 1 && name == "kind";
    return true;
  }
  bool end_object() {
    --depth;
    return true;
  }
  bool start_array(std::size_t) { return !isNext && ++depth <= MAX_JSON_DEPTH; }
  bool end_array() { return end_object(); }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) { return false; }

 private:
  [[nodiscard]] bool skip() const { return depth > 0 && !isNext; }

  int depth = 0;
  bool isNext = false;
};

// The library skips a byte-order mark and takes a NUL byte for the end of the input; neither is
// JSON.
bool isPlain(std::string_view payload) {
  return !payload.starts_with("\xef\xbb\xbf") && payload.find('\0') == std::string_view::npos;
}

bool fill(std::string_view payload, Place root) {
  Filler filler(root);
  return Json::sax_parse(payload.begin(), payload.end(), &filler);
}

template <class T>
std::optional<Message> readKind(std::string_view payload) {
  Message message;
  T& body = message.body.emplace<T>();
  Envelope<T> envelope{message.id, body, {}, 0};
  if (!fill(payload, placeOf(envelope))) return std::nullopt;
  if (envelope.version != PROTOCOL_VERSION || envelope.kind != Schema<T>::KIND) return std::nullopt;
  if (!isLegal(message)) return std::nullopt;
  return message;
}

template <class... Kinds>
std::optional<Message> readAny(const std::variant<Kinds...>*, std::string_view kind,
                               std::string_view payload) {
  std::optional<Message> message;
  (void)((kind == Schema<Kinds>::KIND && (message = readKind<Kinds>(payload), true)) || ...);
  return message;
}

}  // namespace

std::optional<Message> readControl(std::string_view payload) {
  if (!isPlain(payload)) return std::nullopt;
  KindFinder finder;
  Json::sax_parse(payload.begin(), payload.end(), &finder);
  if (!finder.found) return std::nullopt;
  return readAny(static_cast<const Body*>(nullptr), *finder.found, payload);
}

std::optional<End> readEnd(std::string_view payload) {
  End end;
  if (!isPlain(payload) || !fill(payload, placeOf(end)) || !isLegal(end)) return std::nullopt;
  return end;
}

}  // namespace cordon::channel
