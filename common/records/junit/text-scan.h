// Whether bytes are text as XML 1.0 has it, in UTF-8: looked at before expat sees them, for expat
// takes other encodings too. Internal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/records/report.h"

namespace cordon::records {

class TextScan {
 public:
  struct Fault {
    std::uint64_t offset;  // of the character's first byte, in the document
    Reason reason;         // NOT_UTF8 or ILLEGAL_CHARACTER
  };

  // The next bytes of the document. After a fault the scan is over.
  std::optional<Fault> scan(std::string_view bytes);
  // The document ends here.
  [[nodiscard]] std::optional<Fault> finish() const;

 private:
  // A sequence that the last piece did not complete.
  std::array<char, 4> carried{};
  std::size_t carriedSize = 0;
  std::uint64_t consumed = 0;  // bytes of the document that are known to be good
};

// The longest front of `text`, well-formed UTF-8, of at most `most` bytes that cuts no character.
std::string_view cutText(std::string_view text, std::size_t most);

}  // namespace cordon::records
