// A second reading of the rules of JSON Lines for the fuzz targets: over simdjson's document and by
// hand, sharing no table and no code with the readers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <simdjson.h>

namespace cordon::records::fuzz {

enum class Judged : std::uint8_t {
  GOOD,
  UNPARSABLE,
  REFUSED,
  BAD,  // one of the two: simdjson does not say where it was that a line ceased to be JSON
};

using simdjson::dom::element;
using Check = std::function<Judged(element)>;

// An object of exactly these members.
struct Spec {
  std::map<std::string, Check> members;
  std::set<std::string> optional;
};

// Checks that also hand on what they saw.
Check text(std::function<bool(std::string_view)> take, bool controls = false,
           std::size_t most = SIZE_MAX);
Check integer(std::function<bool(std::int64_t)> take);
Check flag(std::function<void(bool)> take);
Check pair(std::function<void(std::size_t, std::int64_t)> take);
Check object(const Spec& spec);

Judged judgeLine(std::string_view line, const Spec& spec);

// Whether all of `text` is of 0-9a-f, and so many.
bool isHex(std::string_view text, std::size_t digits);

struct FileJudged {
  Judged judged = Judged::GOOD;
  std::uint64_t line = 0;  // of the bad one
  std::uint64_t records = 0;
  bool torn = false;
};
// Calls `take` after each good line.
FileJudged judgeFile(std::string_view file, const Spec& spec, const std::function<void()>& take);

// Aborts, so that the fuzzer keeps the input.
void require(bool condition, const char* what);

}  // namespace cordon::records::fuzz
