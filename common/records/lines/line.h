// One line against its table: strict JSON, and nothing that the table has no place for.
#pragma once

#include <span>
#include <string_view>

#include "common/records/lines/schema.h"
#include "common/records/report.h"

namespace cordon::records {

// Fills `to` from `line` (without its LF). NONE, or why the line is bad, after which `to` is half
// filled. Where `isCut`, the line goes on beyond what is given: at best it is LINE_TOO_LONG.
//
// The first violation in byte order decides. A character stands at its first byte; a value is
// judged at its end, an object or a list of the wrong type at its bracket, a missing key at the
// brace that closes the object. One exception: TOO_DEEP decides for its line even after a violation
// of the schema, as far as the line is JSON: no table nests, so it could never be told otherwise.
//
// Beyond JSON itself: integers within ±MAX_LINE_INTEGER and no other numbers ("-0" is 0), no key
// twice in an object, whatever its spelling, no NUL in any spelling, no CR. TAB and space may stand
// between tokens. Control characters (C0, DEL, C1) only as escapes, and only where a field allows
// them: raw ones of C0 are not JSON.
Reason readLine(std::string_view line, bool isCut, std::span<const Field> table, void* to);

// UNPARSABLE or REFUSED, as JSON Lines have it; OK of NONE.
Status statusOf(Reason reason);

}  // namespace cordon::records
