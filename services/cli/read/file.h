// The file that an operator names: opened here, read by the parser alone.
#pragma once

#include <string>
#include <variant>

#include <kj/io.h>

#include "common/records/report.h"

namespace cordon::cli {

// Why there is nothing to hand over.
struct Unread {
  records::Status status = records::Status::REFUSED;
  records::Reason reason = records::Reason::NONE;
  int error = 0;  // errno where there is one
};

// A regular file, open for reading and close-on-exec. Never waits (a FIFO has no writer), never
// opens a device (some act on being opened). MISSING: no such file, or a link to none;
// REFUSED: NOT_REGULAR, or NOT_READABLE by the caller.
std::variant<kj::AutoCloseFd, Unread> openFile(const std::string& path);

}  // namespace cordon::cli
