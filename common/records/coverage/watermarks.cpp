#include "common/records/coverage/watermarks.h"

#include <string>
#include <utility>

#include "common/records/lines/schema.h"

namespace cordon::records {
namespace {

template <std::int64_t Watermark::*MEMBER>
constexpr auto number() {
  return asInteger<Watermark>([](Watermark& to, std::int64_t value) {
    to.*MEMBER = value;
    return true;
  });
}

template <std::int64_t Watermark::*MEMBER, std::int64_t LEAST = 0>
constexpr auto counter() {
  return asInteger<Watermark>([](Watermark& to, std::int64_t value) {
    to.*MEMBER = value;
    return value >= LEAST;
  });
}

constexpr Field LINE[] = {
    {.name = "v", .integer = isVersion},
    {.name = "source",
     .maxBytes = MAX_SOURCE_BYTES,
     .text = asText<Watermark>([](Watermark& to, std::string& value) {
       to.source = std::move(value);
       return true;
     })},
    {.name = "epoch", .integer = number<&Watermark::epoch>()},
    {.name = "seq", .integer = counter<&Watermark::seq, 1>()},
    {.name = "window_ms",
     .elements = 2,
     .element = asElement<Watermark>([](Watermark& to, std::size_t index, std::int64_t value) {
       (index == 0 ? to.window.fromMs : to.window.toMs) = value;
       return true;
     })},
    {.name = "events", .integer = counter<&Watermark::events>()},
    {.name = "bytes", .integer = counter<&Watermark::bytes>()},
    {.name = "dropped", .integer = counter<&Watermark::dropped>()},
    {.name = "backlog", .integer = counter<&Watermark::backlog>()},
    {.name = "alive_since_ms", .integer = number<&Watermark::aliveSinceMs>()},
    {.name = "final", .required = false, .flag = asFlag<Watermark>([](Watermark& to, bool value) {
                                           to.final = value;
                                           return true;
                                         })},
};

}  // namespace

WatermarksReader::WatermarksReader(Take takeRecord)
    : lines(LINE, *this), take(std::move(takeRecord)) {}

void* WatermarksReader::beginRecord() {
  watermark = {};
  return &watermark;
}

}  // namespace cordon::records
