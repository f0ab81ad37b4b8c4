// What one line may say: a closed table of members. A table belongs to one C++ type, whose address
// each of its verbs takes; an object inside the line writes into that same value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace cordon::records {

// A null verb is a type error. A verb says whether it takes the value.
struct Field {
  std::string_view name;
  bool required = true;
  std::size_t maxBytes = std::numeric_limits<std::size_t>::max();  // of a text
  bool controls = false;  // a text may hold control characters, escaped in the file; never NUL
  bool (*text)(void* to, std::string& value) = nullptr;
  bool (*integer)(void* to, std::int64_t value) = nullptr;
  bool (*flag)(void* to, bool value) = nullptr;
  // A list of exactly so many integers.
  std::size_t elements = 0;
  bool (*element)(void* to, std::size_t index, std::int64_t value) = nullptr;
  // An object: `open` makes its place.
  std::span<const Field> members = {};
  bool (*open)(void* to) = nullptr;
};

// Verbs from lambdas without a capture: asText<T>([](T& to, std::string& value) { … }).
template <class T, class F>
constexpr auto asText(F) {
  return [](void* to, std::string& value) { return F{}(*static_cast<T*>(to), value); };
}
template <class T, class F>
constexpr auto asInteger(F) {
  return [](void* to, std::int64_t value) { return F{}(*static_cast<T*>(to), value); };
}
template <class T, class F>
constexpr auto asFlag(F) {
  return [](void* to, bool value) { return F{}(*static_cast<T*>(to), value); };
}
template <class T, class F>
constexpr auto asElement(F) {
  return [](void* to, std::size_t index, std::int64_t value) {
    return F{}(*static_cast<T*>(to), index, value);
  };
}
template <class T, class F>
constexpr auto asObject(F) {
  return [](void* to) { return F{}(*static_cast<T*>(to)); };
}

// `v`: the one version there is.
inline bool isVersion(void*, std::int64_t value) {
  return value == 1;
}

}  // namespace cordon::records
