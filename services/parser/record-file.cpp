#include "services/parser/record-file.h"

#include <utility>

namespace cordon::parser {

RecordFileServer::RecordFileServer(InputFile file) : input(std::move(file)) {}

}  // namespace cordon::parser
