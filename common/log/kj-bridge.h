// KJ's own log lines and stack traces, made fit for a sandboxed process.
#pragma once

#include <kj/exception.h>

#include "common/log/log.h"

namespace cordon::log {

// While it lives (on the stack of main(), as KJ requires), what KJ and Cap'n Proto log becomes an
// event `kj.log` of `log`, escaped and cut: their texts can hold what a peer sent. Stack traces are
// never taken: printing one would start addr2line.
class KjBridge final : public kj::ExceptionCallback {
 public:
  explicit KjBridge(const Log& log);
  void logMessage(kj::LogSeverity severity, const char* file, int line, int contextDepth,
                  kj::String&& text) override;
  StackTraceMode stackTraceMode() override;

 private:
  const Log& target;
};

}  // namespace cordon::log
