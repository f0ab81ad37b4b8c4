// RecordFile of protocols/records.capnp: what cordon makes of one file.
#pragma once

#include <array>
#include <cstddef>

#include "protocols/records.capnp.h"
#include "services/parser/input-file.h"

namespace cordon::parser {

// Answers one read; a second one fails as BAD_ARGUMENT. Dropping the call ends the reading.
class RecordFileServer final : public protocols::RecordFile::Server {
 public:
  explicit RecordFileServer(InputFile file);

  kj::Promise<void> describe(DescribeContext context) override;
  kj::Promise<void> readJunit(ReadJunitContext context) override;
  kj::Promise<void> readVerdicts(ReadVerdictsContext context) override;
  kj::Promise<void> readCoverage(ReadCoverageContext context) override;

 private:
  // Bytes read between two looks at the connection.
  static constexpr std::size_t PIECE = 65536;

  // Whether this is the one read there is.
  bool begin();
  // Feeds the file to `reader`, as far as that may change anything. Whether it could be read.
  template <typename Reader>
  kj::Promise<bool> feedAll(Reader& reader);
  template <typename Reader, typename Context, typename Sink>
  kj::Promise<void> readListed(Context context, Sink sink);

  InputFile input;
  bool begun = false;
  std::array<std::byte, PIECE> piece{};
};

}  // namespace cordon::parser
