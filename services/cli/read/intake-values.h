// The small steps of intake.h: one value each, held against its bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/records/report.h"
#include "protocols/records.capnp.h"

namespace cordon::cli {

// A code of ours for the schema's, whose enumerants are in step; nothing over the last one we know.
template <typename Ours, typename Theirs>
std::optional<Ours> codeFrom(Theirs code, Ours last) {
  const auto number = static_cast<std::uint16_t>(code);
  if (number > static_cast<std::uint16_t>(last)) return std::nullopt;
  return static_cast<Ours>(number);
}

inline std::string_view viewOf(capnp::Data::Reader data) {
  return {reinterpret_cast<const char*>(data.begin()), data.size()};
}

// UTF-8 of at most `most` bytes.
std::optional<std::string> textFrom(capnp::Data::Reader data, std::size_t most);

struct Judgement {
  records::Status status;
  records::Reason reason;
};
// What a reader of a file can say of it as a whole: never MISSING, never a reason that belongs to
// who opens the file, a reason exactly where it is not read.
std::optional<Judgement> judgementFrom(protocols::RecordStatus status,
                                       protocols::RecordReason reason);

enum class Format : std::uint8_t { JUNIT, VERDICTS, COVERAGE };
// Each at most once, and only such as the format has.
std::optional<records::Findings> findingsFrom(capnp::List<protocols::RecordFinding>::Reader list,
                                              Format format);
std::optional<records::Finding> findingFrom(protocols::RecordFinding code, Format format);

}  // namespace cordon::cli
