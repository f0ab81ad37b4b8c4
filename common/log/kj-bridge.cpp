#include "common/log/kj-bridge.h"

namespace cordon::log {
namespace {

Level toLevel(kj::LogSeverity severity) {
  switch (severity) {
    case kj::LogSeverity::DBG:
      return Level::DEBUG;
    case kj::LogSeverity::INFO:
      return Level::INFO;
    case kj::LogSeverity::WARNING:
      return Level::WARN;
    case kj::LogSeverity::ERROR:
    case kj::LogSeverity::FATAL:
      return Level::ERROR;
  }
  return Level::ERROR;
}

}  // namespace

KjBridge::KjBridge(const Log& log) : target(log) {}

void KjBridge::logMessage(kj::LogSeverity severity, const char* file, int line, int,
                          kj::String&& text) {
  target.write(
      toLevel(severity), "kj.log",
      {{"at", file}, {"line", line}, {"text", std::string_view(text.cStr(), text.size())}});
}

kj::ExceptionCallback::StackTraceMode KjBridge::stackTraceMode() {
  return StackTraceMode::NONE;
}

}  // namespace cordon::log
