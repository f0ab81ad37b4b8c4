// Control payloads that are no message of the protocol: not JSON, not canonical in value, or
// outside their schema.
#include <string>
#include <utility>
#include <vector>

#include "tests/hostile/behaviours.h"
#include "tests/support/virtual-client.h"

namespace cordon::tests {
namespace {

// `json` with every @ replaced by the id of the request.
std::string filled(std::string json, const channel::Id& id) {
  const std::string hex = toHex(id);
  for (std::size_t at = json.find('@'); at != std::string::npos; at = json.find('@', at + 1))
    json.replace(at, 1, hex);
  return json;
}

Behaviour payload(std::string name, std::string json, Driver driver = Driver::READ,
                  std::string verdict = "tamper invalid-message x1") {
  return {.name = std::move(name),
          .driver = driver,
          .script =
              [json = std::move(json)](const Heard& heard) {
                return Saying::bytes(rawControl(filled(json, heard.request.id)));
              },
          .verdict = std::move(verdict)};
}

std::vector<Behaviour> text() {
  const std::string good = R"({"id":"@","kind":"file_data","size":0,"truncated":false,"v":3})";
  return {
      // The control of all of this table; its ack is answered by the same, and is no ok.
      payload("right_payload_wrong_ack", good, Driver::READ, "tamper wrong-kind x1"),
      payload("bad_json", "this is not JSON"),
      payload("cut_json", R"({"id":"@","kind":"file_data")"),
      payload("an_array", "[" + good + "]"),
      payload("a_string", R"("file_data")"),
      payload("a_number", "3"),
      payload("nothing_but_space", "   "),
      payload("text_behind_the_object", good + "x"),
      payload("two_objects", good + good),
      payload("nul_behind_the_object", good + std::string(1, '\0')),
      payload("byte_order_mark", "\xef\xbb\xbf" + good),
      payload("utf_16", std::string("{\0\"\0v\0\"\0:\0"
                                    "3\0}\0",
                                    14)),
      payload("single_quotes", R"({'id':'@','kind':'ok','v':3})", Driver::WRITE),
      payload("a_comment", R"({"id":"@","kind":"ok",/* */"v":3})", Driver::WRITE),
      payload("a_trailing_comma", R"({"id":"@","kind":"ok","v":3,})", Driver::WRITE),
      payload(
          "bad_utf_8",
          "{\"errno\":\"EIO\",\"id\":\"@\",\"kind\":\"error\",\"message\":\"\xc3\x28\",\"v\":3}"),
      payload(
          "overlong_utf_8",
          "{\"errno\":\"EIO\",\"id\":\"@\",\"kind\":\"error\",\"message\":\"\xc0\xaf\",\"v\":3}"),
      payload("utf_8_surrogate",
              "{\"errno\":\"EIO\",\"id\":\"@\",\"kind\":\"error\",\"message\":\"\xed\xa0\x80\","
              "\"v\":3}"),
      payload("lone_surrogate",
              R"({"errno":"EIO","id":"@","kind":"error","message":"\ud800","v":3})"),
      payload("raw_control_character",
              "{\"errno\":\"EIO\",\"id\":\"@\",\"kind\":\"error\",\"message\":\"a\nb\",\"v\":3}"),
      payload("nul_in_a_string",
              R"({"errno":"EIO","id":"@","kind":"error","message":"a\u0000b","v":3})"),
      payload("duplicate_key", R"({"id":"@","id":"@","kind":"ok","v":3})", Driver::WRITE),
      payload("duplicate_key_by_escape", R"({"id":"@","i\u0064":"@","kind":"ok","v":3})",
              Driver::WRITE),
      payload(
          "duplicate_nested_key",
          R"({"entries":[{"event":"e","event":"e","level":"info","ts_ms":1}],"id":"@","kind":"diag_result","v":3})",
          Driver::DIAG),
      payload("null", R"({"id":"@","kind":"ok","v":null})", Driver::WRITE),
      payload("null_in_an_optional_field",
              R"({"data_size":null,"id":"@","kind":"file_data","size":0,"v":3})"),
      payload(
          "nested_null",
          R"({"entries":[{"event":"e","level":"info","request_id":null,"ts_ms":1}],"id":"@","kind":"diag_result","v":3})",
          Driver::DIAG),
      payload("deep_arrays", "{\"x\":" + std::string(16000, '[') + std::string(16000, ']') + "}"),
      payload("deep_objects",
              [] {
                std::string json;
                for (int i = 0; i < 5000; ++i) json += "{\"a\":";
                return json + "1" + std::string(5000, '}');
              }()),
      payload("deep_and_never_closed", std::string(32768, '[')),
      payload("not_a_number", R"({"id":"@","kind":"file_data","size":NaN,"v":3})"),
      payload("infinity", R"({"id":"@","kind":"file_data","size":Infinity,"v":3})"),
  };
}

std::vector<Behaviour> fields() {
  return {
      payload("v_absent", R"({"id":"@","kind":"ok"})", Driver::WRITE),
      payload("v2_reply", R"({"id":"@","kind":"ok","v":2})", Driver::WRITE),
      payload("v4_reply", R"({"id":"@","kind":"ok","v":4})", Driver::WRITE),
      payload("v_is_a_string", R"({"id":"@","kind":"ok","v":"3"})", Driver::WRITE),
      payload("v_is_a_float", R"({"id":"@","kind":"ok","v":3.0})", Driver::WRITE),
      payload("v_has_an_exponent", R"({"id":"@","kind":"ok","v":3e0})", Driver::WRITE),
      payload("v_is_true", R"({"id":"@","kind":"ok","v":true})", Driver::WRITE),
      payload("v_has_a_leading_zero", R"({"id":"@","kind":"ok","v":03})", Driver::WRITE),
      payload("unknown_kind", R"({"id":"@","kind":"backdoor","v":3})"),
      payload("kind_absent", R"({"id":"@","v":3})"),
      payload("kind_is_a_number", R"({"id":"@","kind":7,"v":3})"),
      payload("kind_in_capitals", R"({"id":"@","kind":"OK","v":3})", Driver::WRITE),
      payload("id_absent", R"({"kind":"ok","v":3})", Driver::WRITE),
      payload("id_is_short", R"({"id":"a1","kind":"ok","v":3})", Driver::WRITE),
      payload("id_is_long", R"({"id":"@\n","kind":"ok","v":3})", Driver::WRITE),
      payload("id_in_capitals", R"({"id":"A1A1A1A1A1A1A1A1A1A1A1A1A1A1A1A1","kind":"ok","v":3})",
              Driver::WRITE),
      payload("unknown_key", R"({"extra":1,"id":"@","kind":"ok","v":3})", Driver::WRITE),
      payload("key_in_another_case", R"({"Id":"@","id":"@","kind":"ok","v":3})", Driver::WRITE),
      payload("data_size_where_none_is", R"({"data_size":0,"id":"@","kind":"ok","v":3})",
              Driver::WRITE),
      payload("data_size_of_an_error",
              R"({"data_size":3,"errno":"EIO","id":"@","kind":"error","message":"m","v":3})"),
      payload("exec_result_without_rc",
              R"({"id":"@","kind":"exec_result","stderr_size":0,"stdout_size":0,"v":3})",
              Driver::EXEC),
      payload(
          "rc_over_32_bits",
          R"({"id":"@","kind":"exec_result","rc":2147483648,"stderr_size":0,"stdout_size":0,"v":3})",
          Driver::EXEC),
      payload(
          "rc_under_32_bits",
          R"({"id":"@","kind":"exec_result","rc":-2147483649,"stderr_size":0,"stdout_size":0,"v":3})",
          Driver::EXEC),
      payload("rc_is_a_float",
              R"({"id":"@","kind":"exec_result","rc":0.5,"stderr_size":0,"stdout_size":0,"v":3})",
              Driver::EXEC),
      payload("rc_is_minus_zero",
              R"({"id":"@","kind":"exec_result","rc":-0,"stderr_size":0,"stdout_size":0,"v":3})",
              Driver::EXEC),
      payload(
          "lying_exec_sizes",
          R"({"data_size":5,"id":"@","kind":"exec_result","rc":0,"stderr_size":10,"stdout_size":10,"v":3})",
          Driver::EXEC),
      payload("exec_sizes_without_bulk",
              R"({"id":"@","kind":"exec_result","rc":0,"stderr_size":0,"stdout_size":1,"v":3})",
              Driver::EXEC),
      payload(
          "exec_sizes_that_wrap",
          R"({"data_size":5,"id":"@","kind":"exec_result","rc":0,"stderr_size":-5,"stdout_size":10,"v":3})",
          Driver::EXEC),
      payload(
          "exec_flag_is_a_number",
          R"({"id":"@","kind":"exec_result","rc":0,"stderr_size":0,"stdout_size":0,"stdout_truncated":1,"v":3})",
          Driver::EXEC),
      payload("file_size_lie", R"({"data_size":3,"id":"@","kind":"file_data","size":4,"v":3})"),
      payload("file_size_without_bulk", R"({"id":"@","kind":"file_data","size":4,"v":3})"),
      payload("size_of_thirty_digits",
              R"({"id":"@","kind":"file_data","size":100000000000000000000000000000,"v":3})"),
      payload("size_in_a_string", R"({"id":"@","kind":"file_data","size":"0","v":3})"),
      payload("elapsed_over_the_integers",
              R"({"elapsed_ms":9007199254740993,"id":"@","kind":"pending","target_id":"@","v":3})",
              Driver::POLL),
      payload("etime_without_layer",
              R"({"errno":"ETIME","id":"@","kind":"error","message":"m","v":3})"),
      payload("partial_with_another_errno",
              R"({"errno":"EIO","id":"@","kind":"error","message":"m","partial":"p","v":3})"),
      payload("unknown_layer",
              R"({"errno":"ETIME","id":"@","kind":"error","layer":"kernel","message":"m","v":3})"),
      payload("errno_in_small_letters",
              R"({"errno":"enoent","id":"@","kind":"error","message":"m","v":3})"),
      payload("errno_of_one_letter",
              R"({"errno":"E","id":"@","kind":"error","message":"m","v":3})"),
      payload("errno_with_a_path",
              R"({"errno":"EIO/../..","id":"@","kind":"error","message":"m","v":3})"),
      payload("error_without_a_message", R"({"errno":"EIO","id":"@","kind":"error","v":3})"),
      payload("message_too_long", R"({"errno":"EIO","id":"@","kind":"error","message":")" +
                                      std::string(4097, 'm') + R"(","v":3})"),
      payload(
          "partial_too_long",
          R"({"errno":"ETIME","id":"@","kind":"error","layer":"command","message":"m","partial":")" +
              std::string(4097, 'p') + R"(","v":3})"),
      payload("pong_of_another_protocol",
              R"({"daemon":"d","id":"@","kind":"pong","protocol":4,"session":"@","v":3})",
              Driver::PING),
      payload("pong_without_session", R"({"daemon":"d","id":"@","kind":"pong","v":3})",
              Driver::PING),
      payload("daemon_too_long",
              R"({"daemon":")" + std::string(129, 'd') +
                  R"(","id":"@","kind":"pong","session":"@","v":3})",
              Driver::PING),
      payload(
          "diag_event_is_empty",
          R"({"entries":[{"event":"","level":"info","ts_ms":1}],"id":"@","kind":"diag_result","v":3})",
          Driver::DIAG),
      payload(
          "diag_level_is_unknown",
          R"({"entries":[{"event":"e","level":"fatal","ts_ms":1}],"id":"@","kind":"diag_result","v":3})",
          Driver::DIAG),
      payload("diag_request_id_too_long",
              R"({"entries":[{"event":"e","level":"info","request_id":")" + std::string(65, 'r') +
                  R"(","ts_ms":1}],"id":"@","kind":"diag_result","v":3})",
              Driver::DIAG),
      payload(
          "diag_of_more_than_was_asked",
          [] {
            std::string json = R"({"entries":[)";
            for (int i = 0; i < 800; ++i)
              json += std::string(i == 0 ? "" : ",") + R"({"event":"e","level":"info","ts_ms":1})";
            return json + R"(],"id":"@","kind":"diag_result","v":3})";
          }(),
          Driver::DIAG),
      {.name = "diag_over_the_frame",
       .driver = Driver::DIAG,
       .script =
           [](const Heard&) { return Saying::bytes(rawHeader(40000, channel::FRAME_CONTROL)); },
       .verdict = "tamper frame-too-large x1"},
  };
}

}  // namespace

std::vector<Behaviour> payloadBehaviours() {
  std::vector<Behaviour> all = text();
  for (auto& one : fields()) all.push_back(std::move(one));
  return all;
}

}  // namespace cordon::tests
