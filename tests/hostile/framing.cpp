// Frames, their order and their sizes; bulk and its END; what comes late, slowly or never.
#include <string>
#include <utility>
#include <vector>

#include "tests/hostile/behaviours.h"
#include "tests/support/virtual-client.h"

namespace cordon::tests {
namespace {

using channel::FRAME_CONTROL;
using channel::FRAME_DATA;
using channel::FRAME_END;
using channel::Id;

// A file_data reply that announces `size` bytes; what follows is the behaviour's.
std::string announce(const Id& id, std::int64_t size) {
  return rawControl("{\"data_size\":" + std::to_string(size) + ",\"id\":\"" + toHex(id) +
                    "\",\"kind\":\"file_data\",\"size\":" + std::to_string(size) + ",\"v\":3}");
}

using Bytes = std::string (*)(const Id&);
Script saying(Bytes bytes) {
  return honestBut([bytes](const Heard& heard) { return Saying::bytes(bytes(heard.request.id)); });
}

std::string repeated(const std::string& what, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += what;
  return all;
}

std::string endPayload(std::string_view json) {
  return rawFrame(FRAME_END, json);
}

Behaviour endLie(std::string name, std::string json, std::string verdict) {
  return {.name = std::move(name),
          .script = honestBut([json = std::move(json)](const Heard& heard) {
            return Saying::bytes(announce(heard.request.id, 3) + rawData("abc") + endPayload(json));
          }),
          .verdict = std::move(verdict)};
}

std::vector<Behaviour> frames() {
  return {
      {.name = "garbage_bytes",
       .script = saying([](const Id&) { return std::string(16, '\xff'); }),
       .verdict = "tamper frame-too-large x1"},
      {.name = "oversized_length_field",
       .script = saying([](const Id&) { return rawHeader(1u << 24, FRAME_CONTROL); }),
       .verdict = "tamper frame-too-large x1"},
      {.name = "length_one_over",
       .script = saying([](const Id&) { return rawHeader(32769, FRAME_CONTROL); }),
       .verdict = "tamper frame-too-large x1"},
      {.name = "data_frame_one_over",
       .script =
           saying([](const Id& id) { return announce(id, 40000) + rawHeader(32769, FRAME_DATA); }),
       .verdict = "tamper frame-too-large x1"},
      {.name = "length_judged_before_type",
       .script = saying([](const Id&) { return rawHeader(32769, 'X'); }),
       .verdict = "tamper frame-too-large x1"},
      {.name = "unknown_frame_type",
       .script = saying([](const Id&) { return rawHeader(4, 'X'); }),
       .verdict = "tamper protocol-violation x1"},
      {.name = "lower_case_frame_type",
       .script = saying([](const Id&) { return rawFrame('c', "{}"); }),
       .verdict = "tamper protocol-violation x1"},
      {.name = "data_frame_first",
       .script = saying([](const Id&) { return rawData("abc"); }),
       .verdict = "tamper protocol-violation x1"},
      {.name = "end_frame_first",
       .script = saying([](const Id&) { return rawEnd(""); }),
       .verdict = "tamper protocol-violation x1"},
      {.name = "control_inside_bulk",
       .script = saying([](const Id& id) { return announce(id, 3) + rawData("a") + ok(id); }),
       .verdict = "tamper protocol-violation x1"},
      {.name = "control_instead_of_end",
       .script = saying([](const Id& id) { return announce(id, 1) + rawData("a") + ok(id); }),
       .verdict = "tamper protocol-violation x1"},
      {.name = "empty_control_frame",
       .script = saying([](const Id&) { return rawControl(""); }),
       .verdict = "tamper invalid-message x1"},
      {.name = "a_request_for_an_answer",
       .script = saying([](const Id&) { return std::string("GET / HTTP/1.1\r\n\r\n"); }),
       .verdict = "tamper frame-too-large x1"},
      {.name = "endless_empty_data_frames",
       .script = saying([](const Id& id) { return announce(id, 3) + repeated(rawData(""), 5000); }),
       .verdict = "tamper invalid-message x1"},
      {.name = "seventeen_empty_data_frames",
       .script = saying([](const Id& id) {
         return announce(id, 3) + repeated(rawData(""), 17) + rawData("abc") + rawEnd("abc");
       }),
       .verdict = "tamper invalid-message x1"},
      // The control of the two above: so many are borne.
      {.name = "sixteen_empty_data_frames",
       .script = saying([](const Id& id) {
         return announce(id, 3) + repeated(rawData(""), 16) + rawData("abc") + rawEnd("abc");
       }),
       .verdict = "ok"},
  };
}

std::vector<Behaviour> bulk() {
  return {
      {.name = "bulk_beyond_the_declaration",
       .script = saying([](const Id& id) { return announce(id, 3) + rawData("abcd"); }),
       .verdict = "tamper protocol-violation x1"},
      {.name = "bulk_beyond_the_cap_declared",
       .script = saying([](const Id& id) { return announce(id, 65537); }),
       .verdict = "tamper bulk-overrun x1"},
      {.name = "bulk_of_a_gibibyte_declared",
       .script = saying([](const Id& id) { return announce(id, 1 << 30); }),
       .verdict = "tamper bulk-overrun x1"},
      {.name = "bulk_declared_over_the_limit",
       .script = saying([](const Id& id) { return announce(id, (std::int64_t{1} << 30) + 1); }),
       .verdict = "tamper invalid-message x1"},
      {.name = "end_before_all_came",
       .script =
           saying([](const Id& id) { return announce(id, 3) + rawData("ab") + rawEnd("ab"); }),
       .verdict = "tamper bulk-mismatch x1"},
      {.name = "end_claims_the_declaration",
       .script = saying([](const Id& id) {
         return announce(id, 3) + rawData("ab") + rawEnd(sha256Hex("ab"), 3);
       }),
       .verdict = "tamper bulk-mismatch x1"},
      {.name = "end_size_lie",
       .script = saying([](const Id& id) {
         return announce(id, 3) + rawData("abc") + rawEnd(sha256Hex("abc"), 4);
       }),
       .verdict = "tamper bulk-mismatch x1"},
      {.name = "digest_lie",
       .script =
           saying([](const Id& id) { return announce(id, 3) + rawData("abc") + rawEnd("abd"); }),
       .verdict = "tamper bulk-mismatch x1"},
      {.name = "digest_lie_about_nothing",
       .script = saying([](const Id& id) { return announce(id, 0) + rawEnd(sha256Hex("x"), 0); }),
       .verdict = "tamper bulk-mismatch x1"},
      {.name = "end_twice",
       .script = saying([](const Id& id) {
         return announce(id, 3) + rawData("abc") + rawEnd("abc") + rawEnd("abc");
       }),
       .verdict = "tamper trailing-data x1"},
      {.name = "data_behind_end",
       .script = saying([](const Id& id) {
         return announce(id, 3) + rawData("abc") + rawEnd("abc") + rawData("d");
       }),
       .verdict = "tamper trailing-data x1"},
      endLie("end_is_not_json", "END", "tamper invalid-message x1"),
      endLie("end_is_empty", "", "tamper invalid-message x1"),
      endLie("end_without_digest", R"({"size":3})", "tamper invalid-message x1"),
      endLie("end_without_size", "{\"sha256\":\"" + sha256Hex("abc") + "\"}",
             "tamper invalid-message x1"),
      endLie("end_with_more", "{\"sha256\":\"" + sha256Hex("abc") + "\",\"size\":3,\"x\":1}",
             "tamper invalid-message x1"),
      endLie("end_says_size_twice",
             "{\"sha256\":\"" + sha256Hex("abc") + "\",\"size\":3,\"size\":3}",
             "tamper invalid-message x1"),
      endLie("end_size_is_a_float", "{\"sha256\":\"" + sha256Hex("abc") + "\",\"size\":3.0}",
             "tamper invalid-message x1"),
      endLie("end_size_is_true", "{\"sha256\":\"" + sha256Hex("abc") + "\",\"size\":true}",
             "tamper invalid-message x1"),
      endLie("end_size_is_null", "{\"sha256\":\"" + sha256Hex("abc") + "\",\"size\":null}",
             "tamper invalid-message x1"),
      endLie("end_size_is_negative", "{\"sha256\":\"" + sha256Hex("abc") + "\",\"size\":-3}",
             "tamper invalid-message x1"),
      endLie(
          "end_digest_in_capitals",
          R"({"sha256":"BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD","size":3})",
          "tamper invalid-message x1"),
      endLie("end_digest_is_short", R"({"sha256":"ba78","size":3})", "tamper invalid-message x1"),
  };
}

std::vector<Behaviour> behind() {
  return {
      {.name = "unsolicited_bulk",
       .driver = Driver::WRITE,
       .script = saying([](const Id& id) { return ok(id) + rawData("abc") + rawEnd("abc"); }),
       .verdict = "tamper trailing-data x1"},
      {.name = "duplicate_reply",
       .driver = Driver::WRITE,
       .script = saying([](const Id& id) { return ok(id) + ok(id); }),
       .verdict = "tamper trailing-data x1"},
      {.name = "trailing_garbage",
       .driver = Driver::WRITE,
       .script = saying([](const Id& id) { return ok(id) + "junk"; }),
       .verdict = "tamper trailing-data x1"},
      {.name = "trailing_byte_late",
       .driver = Driver::WRITE,
       .script = honestBut([](const Heard& heard) {
         return Saying{.parts = {{.bytes = ok(heard.request.id)},
                                 {.bytes = "\n", .after = 100 * kj::SECONDS}}};
       }),
       .verdict = "tamper trailing-data x1"},
      {.name = "never_closing",
       .script = honestBut(
           [](const Heard& heard) { return Saying::holding(file(heard.request.id, "abc")); }),
       .verdict = "budget channel x1"},
      {.name = "never_closing_exec",
       .driver = Driver::EXEC,
       .script = honestBut([](const Heard& heard) {
         const auto* poll = std::get_if<channel::Poll>(&heard.request.body);
         return Saying::holding(result(poll != nullptr ? poll->targetId : heard.request.id, "abc"));
       }),
       .verdict = "budget channel x1"},
  };
}

std::vector<Behaviour> pace() {
  return {
      {.name = "silence",
       .script = honestBut([](const Heard&) { return Saying::silence(); }),
       .verdict = "budget channel x1"},
      {.name = "silence_to_an_exec",
       .driver = Driver::EXEC,
       .script = honestBut([](const Heard&) { return Saying::silence(); }),
       .verdict = "budget channel x1"},
      {.name = "slow_loris",
       .script = honestBut([](const Heard& heard) {
         return Saying::dribble(file(heard.request.id, "abc"), 10 * kj::SECONDS);
       }),
       .verdict = "budget channel x1"},
      // The control of the one above: dribbling is legal within the allowance.
      {.name = "dribble",
       .script = honestBut([](const Heard& heard) {
         return Saying::dribble(file(heard.request.id, "abc"), 10 * kj::MILLISECONDS);
       }),
       .verdict = "ok"},
      {.name = "slow_bulk_in_tiny_frames",
       .script = honestBut([](const Heard& heard) {
         Saying saying{.parts = {{.bytes = announce(heard.request.id, 60000)}}};
         for (int i = 0; i < 1000; ++i)
           saying.parts.push_back({.bytes = rawData("x"), .after = 1 * kj::SECONDS});
         return saying;
       }),
       .verdict = "budget channel x1"},
      {.name = "empty_data_frames_slowly",
       .script = honestBut([](const Heard& heard) {
         Saying saying{.parts = {{.bytes = announce(heard.request.id, 3)}}};
         for (int i = 0; i < 16; ++i)
           saying.parts.push_back({.bytes = rawData(""), .after = 12 * kj::SECONDS});
         return saying;
       }),
       .verdict = "budget channel x1"},
      {.name = "closes_at_once",
       .script = honestBut([](const Heard&) { return Saying::close(); }),
       .verdict = "loss reply-lost x3"},
      {.name = "closes_at_once_on_exec",
       .driver = Driver::EXEC,
       .script = honestBut([](const Heard&) { return Saying::close(); }),
       .verdict = "loss reply-lost x4"},
      {.name = "closes_at_once_on_ping",
       .driver = Driver::PING,
       .script = [](const Heard&) { return Saying::close(); },
       .verdict = "loss reply-lost x3"},
      {.name = "never_reads",
       .script = nullptr,
       .verdict = "budget channel x1",
       .dial = [](unsigned) -> Dial { return DialIsDeaf{Saying::silence()}; }},
      {.name = "hangs_up_without_reading",
       .script = nullptr,
       .verdict = "loss reply-lost x3",
       .dial = [](unsigned) -> Dial { return DialIsDeaf{Saying::close()}; }},
      {.name = "hangs_in_the_dial",
       .script = nullptr,
       .verdict = "budget channel x1",
       .dial = [](unsigned) -> Dial { return DialHangs{}; }},
      {.name = "refuses_every_dial",
       .script = nullptr,
       .verdict = "loss unreachable x0",
       .dial = [](unsigned) -> Dial { return parser::Unreachable{}; }},
      {.name = "is_another_peer",
       .script = nullptr,
       .verdict = "tamper peer-mismatch x0",
       .dial = [](unsigned) -> Dial {
         return parser::Tamper{.type = parser::TamperClass::PEER_MISMATCH, .frame = std::nullopt};
       }},
      {.name = "lies_in_the_handshake_of_a_resend",
       .script = honestBut([](const Heard&) { return Saying::close(); }),
       .verdict = "tamper handshake x1",
       .dial = [](unsigned dial) -> Dial {
         if (dial == 1) return DialWorks{};
         return parser::Tamper{.type = parser::TamperClass::HANDSHAKE, .frame = std::nullopt};
       }},
      {.name = "is_lost_for_good_after_a_delivery",
       .script = honestBut([](const Heard&) { return Saying::close(); }),
       .verdict = "loss reply-lost x1",
       .dial = [](unsigned dial) -> Dial {
         if (dial == 1) return DialWorks{};
         return parser::Unreachable{};
       }},
  };
}

}  // namespace

std::vector<Behaviour> framingBehaviours() {
  std::vector<Behaviour> all;
  for (auto part : {frames(), bulk(), behind(), pace()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace cordon::tests
