// Whether bytes are text as XML 1.0 has it, in UTF-8: looked at before expat sees them, for expat
// takes other encodings too. Internal.
#pragma once

#include <cstddef>
#include <string_view>

#include "common/records/report.h"

namespace cordon::records {

struct TextScan {
  // Bytes of whole characters. What follows them is a fault, or else a character that the end of
  // the bytes cuts: at most three bytes.
  std::size_t good = 0;
  Reason fault = Reason::NONE;  // NOT_UTF8 or ILLEGAL_CHARACTER
  // Where a character is cut: how many bytes it is to have.
  std::size_t cutLength = 0;
};
TextScan scanText(std::string_view bytes);

// The longest front of `text`, well-formed UTF-8, of at most `most` bytes that cuts no character.
std::string_view cutText(std::string_view text, std::size_t most);

}  // namespace cordon::records
