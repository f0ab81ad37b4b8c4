// The golden frames of protocols/vectors, for the tests of everything that speaks the guest
// channel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/channel/decoder.h"
#include "common/channel/message.h"

namespace cordon::channel::testing {

// A message with its bulk, and the stream it is sent as.
struct ValidVector {
  std::string name;
  Message message;
  std::string bulk;
  std::string bytes;
  // False: a decoder takes these bytes, but an encoder writes others.
  bool canonical = true;
};

// A whole stream that ends in an error: of a frame, or of the stream's end (TRUNCATED, CLOSED).
struct InvalidVector {
  std::string name;
  std::string bytes;
  std::uint64_t bulkCap = DEFAULT_BULK_CAP;  // of the reader
  DecodeError error = DecodeError::CLOSED;
};

// Read anew at each call; a file that is missing or not as expected throws, which fails the test.
std::vector<ValidVector> validVectors();
std::vector<InvalidVector> invalidVectors();

// The front of `bytes` in printable form, for the output of a failed test.
std::string show(std::string_view bytes);

}  // namespace cordon::channel::testing
