// The codec against protocols/vectors, in both directions and however the stream is cut.
#include "common/channel/testing/vectors.h"

#include <set>

#include <gtest/gtest.h>

#include "common/channel/encoder.h"
#include "common/channel/sha256.h"

namespace cordon::channel {
namespace {

using testing::InvalidVector;
using testing::invalidVectors;
using testing::show;
using testing::ValidVector;
using testing::validVectors;

std::span<const std::byte> bytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

struct Outcome {
  std::optional<Message> message;
  std::string bulk;
  std::optional<DecodeError> error;
  Sha256 offending{};
};

Outcome decode(std::string_view stream, std::size_t step, std::uint64_t cap) {
  Outcome outcome;
  Decoder decoder(cap);
  for (auto all = bytesOf(stream); !all.empty();) {
    auto input = all.first(std::min(step, all.size()));
    all = all.subspan(input.size());
    for (;;) {
      const auto event = decoder.next(input);
      if (std::holds_alternative<Decoder::NeedMore>(event)) break;
      if (const auto* bulk = std::get_if<Decoder::Bulk>(&event)) {
        outcome.bulk.append(reinterpret_cast<const char*>(bulk->bytes.data()), bulk->bytes.size());
      } else if (const auto* error = std::get_if<DecodeError>(&event)) {
        outcome.error = *error;
        outcome.offending = decoder.offendingFrame();
        return outcome;
      } else if (std::holds_alternative<Decoder::Done>(event)) {
        EXPECT_TRUE(input.empty() && all.empty());
        EXPECT_EQ(decoder.bulkDigest(), sha256Of(std::string_view(outcome.bulk)));
        outcome.message = decoder.take();
        return outcome;
      }
    }
  }
  outcome.error = decoder.finish();
  return outcome;
}

TEST(Vectors, CoverEveryKindAndEveryError) {
  std::set<std::size_t> kinds;
  for (const ValidVector& vector : validVectors()) kinds.insert(vector.message.body.index());
  EXPECT_EQ(kinds.size(), std::variant_size_v<Body>);
  std::set<DecodeError> errors;
  for (const InvalidVector& vector : invalidVectors()) errors.insert(vector.error);
  EXPECT_EQ(errors.size(), 7u);
}

TEST(Vectors, ValidOnesAreEncodedToTheseBytes) {
  for (const ValidVector& vector : validVectors()) {
    const auto encoded = encodeMessage(vector.message, bytesOf(vector.bulk));
    ASSERT_TRUE(std::holds_alternative<std::string>(encoded)) << vector.name;
    EXPECT_EQ(std::get<std::string>(encoded) == vector.bytes, vector.canonical)
        << vector.name << "\n  is   " << show(std::get<std::string>(encoded)) << "\n  want "
        << show(vector.bytes);
  }
}

TEST(Vectors, ValidOnesAreDecodedToTheseMessages) {
  for (const ValidVector& vector : validVectors()) {
    for (const std::size_t step : {vector.bytes.size(), std::size_t{1}, std::size_t{4099}}) {
      const Outcome outcome = decode(vector.bytes, step, DEFAULT_BULK_CAP);
      ASSERT_FALSE(outcome.error) << vector.name << ": " << name(*outcome.error);
      EXPECT_TRUE(outcome.message == vector.message) << vector.name;
      EXPECT_TRUE(outcome.bulk == vector.bulk) << vector.name;
    }
  }
}

TEST(Vectors, ValidOnesCutAnywhereAreTruncated) {
  for (const ValidVector& vector : validVectors()) {
    if (vector.bytes.size() > 1000) continue;
    for (std::size_t cut = 1; cut < vector.bytes.size(); ++cut) {
      const Outcome outcome =
          decode(std::string_view(vector.bytes).substr(0, cut), cut, DEFAULT_BULK_CAP);
      ASSERT_EQ(outcome.error, DecodeError::TRUNCATED) << vector.name << " cut at " << cut;
    }
  }
}

TEST(Vectors, InvalidOnesEndInTheirError) {
  for (const InvalidVector& vector : invalidVectors()) {
    std::optional<Sha256> offending;
    for (const std::size_t step : {vector.bytes.size() + 1, std::size_t{1}, std::size_t{7}}) {
      const Outcome outcome = decode(vector.bytes, step, vector.bulkCap);
      EXPECT_EQ(outcome.error ? name(*outcome.error) : "a message", name(vector.error))
          << vector.name << "\n  " << show(vector.bytes);
      EXPECT_EQ(offending.value_or(outcome.offending), outcome.offending) << vector.name;
      offending = outcome.offending;
    }
  }
}

// Lengths and heads that were computed apart from generate.py. Source: protocols/channel.md §7.
TEST(Vectors, HaveTheLengthsOfTheSpecification) {
  const std::map<std::string, std::string> heads = {
      {"ping-every-field", std::string("\0\0\0\x3d"
                                       "C",
                                       5)},
      {"pong-every-field", std::string("\0\0\0\x8c"
                                       "C",
                                       5)},
      {"ack-every-field", std::string("\0\0\0\x6b"
                                      "C",
                                      5)},
      {"write_file-empty-mode-0600", std::string("\0\0\0\x91"
                                                 "C",
                                                 5)},
      {"exec_result-signal-9", std::string("\0\0\0\x9e"
                                           "C",
                                           5)},
      {"file_data-every-field", std::string("\0\0\0\x6a"
                                            "C",
                                            5)},
      {"error-every-field", std::string("\0\0\0\x7c"
                                        "C",
                                        5)},
  };
  std::size_t found = 0;
  for (const ValidVector& vector : validVectors()) {
    const auto head = heads.find(vector.name);
    if (head == heads.end()) continue;
    ++found;
    EXPECT_EQ(show(vector.bytes.substr(0, FRAME_HEADER_SIZE)), show(head->second)) << vector.name;
    if (vector.name == "write_file-empty-mode-0600") {
      EXPECT_EQ(show(vector.bytes.substr(5 + 0x91, 5)), show(std::string("\0\0\0\x56"
                                                                         "E",
                                                                         5)));
      EXPECT_EQ(vector.bytes.size(), 5u + 0x91 + 5 + 0x56);
    }
    if (vector.name == "file_data-every-field") {
      EXPECT_EQ(show(vector.bytes.substr(5 + 0x6a, 8)), show(std::string("\0\0\0\x03"
                                                                         "D\0\xff"
                                                                         "z",
                                                                         8)));
      EXPECT_NE(
          vector.bytes.find("b2477900cc681fa217668e5f57ef893ae64ef3702c482ea9874abe5ad62455ab"),
          std::string::npos);
    }
  }
  EXPECT_EQ(found, heads.size());
}

}  // namespace
}  // namespace cordon::channel
