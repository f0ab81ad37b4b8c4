#include "common/channel/legal.h"

#include <algorithm>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "common/channel/text.h"

namespace cordon::channel {
namespace {

bool within(std::int64_t value, Range range) {
  return value >= range.min && value <= range.max;
}

bool within(const std::string& value, Length length) {
  const auto count = countCodePoints(value);
  return count && *count >= length.min && *count <= length.max;
}

bool within(const std::string& value, ErrnoShape) {
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return value.size() >= 2 && value.size() <= 16 && upper(value.front()) &&
         std::all_of(value.begin(), value.end(), [&](char c) { return upper(c) || digit(c); });
}

template <class T>
bool anyFieldIllegal(const T& value);

template <HasSchema T>
bool within(const T& value, Unbounded) {
  return !anyFieldIllegal(value);
}

template <class T>
requires std::is_enum_v<T>
bool within(T value, Unbounded) {
  return static_cast<std::size_t>(value) < WORDS<T>.size();
}

bool within(bool, Unbounded) {
  return true;
}
bool within(const Id&, Unbounded) {
  return true;
}
bool within(const Sha256&, Unbounded) {
  return true;
}

bool within(const std::vector<std::string>& list, Count count) {
  return list.size() >= count.min && list.size() <= count.max &&
         std::all_of(list.begin(), list.end(),
                     [](const auto& text) { return within(text, Length{}); });
}

bool within(const std::vector<DiagEntry>& list, Count count) {
  return list.size() >= count.min && list.size() <= count.max &&
         std::all_of(list.begin(), list.end(),
                     [](const auto& entry) { return within(entry, Unbounded{}); });
}

bool within(const std::map<std::string, std::string>& map, Unbounded) {
  return std::all_of(map.begin(), map.end(), [](const auto& entry) {
    return within(entry.first, Length{}) && within(entry.second, Length{});
  });
}

bool within(const std::map<std::string, GuestState>& map, Unbounded) {
  return std::all_of(map.begin(), map.end(), [](const auto& entry) {
    return within(entry.first, Length{}) && within(entry.second, Unbounded{});
  });
}

template <class T, class Bounds>
bool within(const std::optional<T>& value, Bounds bounds) {
  return !value || within(*value, bounds);
}

template <class T>
bool anyFieldIllegal(const T& value) {
  if (!eachField<T>([&](const auto& field) { return within(value.*field.member, field.bounds); })) {
    return true;
  }
  if constexpr (requires { Schema<T>::crossRules(value); }) return !Schema<T>::crossRules(value);
  return false;
}

}  // namespace

bool isLegal(const Message& message) {
  return std::visit([](const auto& body) { return within(body, Unbounded{}); }, message.body);
}

bool isLegal(const End& end) {
  return within(end, Unbounded{});
}

}  // namespace cordon::channel
