// The parser that reads one file for us, as a process: started, spoken to over one socket, gone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <sys/types.h>
#include <variant>

#include <kj/io.h>

#include "services/cli/read/confine.h"

namespace cordon::cli {

// Where cordon-parser is: beside this program, else where packages put it. Never looked for in
// $PATH. Empty where it is at neither place.
std::string findParser();

// How it ended.
struct ReaderEnd {
  int signal = 0;          // that killed it; 0: it exited
  int code = 0;            // exit code
  bool outOfTime = false;  // killed for the processor time that it used
};

class ReaderProcess {
 public:
  // Starts `binary` and hands it `file`. Waits until it executes.
  static std::variant<std::unique_ptr<ReaderProcess>, StartFailure> start(const std::string& binary,
                                                                          kj::AutoCloseFd file);
  ~ReaderProcess();
  KJ_DISALLOW_COPY(ReaderProcess);

  // Our end of the connection, non-blocking; to be taken once.
  kj::AutoCloseFd takeSocket() { return kj::mv(socket); }

  // After the socket is closed: waits a moment for it to end by itself, then kills it.
  ReaderEnd end();

  // What it wrote to its log, the first 16 KiB: bytes of a process that may be lost.
  std::string log();

 private:
  ReaderProcess(pid_t child, kj::AutoCloseFd ourSocket, kj::AutoCloseFd logEnd)
      : pid(child), socket(kj::mv(ourSocket)), logPipe(kj::mv(logEnd)) {}

  pid_t pid;
  kj::AutoCloseFd socket;
  kj::AutoCloseFd logPipe;
  bool isReaped = false;
};

}  // namespace cordon::cli
