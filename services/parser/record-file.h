// RecordFile of protocols/records.capnp: what cordon makes of one file.
#pragma once

#include "protocols/records.capnp.h"
#include "services/parser/input-file.h"

namespace cordon::parser {

// Answers one read; a second one fails as BAD_ARGUMENT. Dropping the call ends the reading.
class RecordFileServer final : public protocols::RecordFile::Server {
 public:
  explicit RecordFileServer(InputFile file);

 private:
  InputFile input;
};

}  // namespace cordon::parser
