// cordon-guest-exec: runs one command in a guest through the channel parser of its range.
#include <cstdio>
#include <exception>
#include <string>
#include <unistd.h>
#include <variant>
#include <vector>

#include <kj/async-io.h>
#include <kj/exception.h>

#include "common/ipc/error.h"
#include "deploy/guest-exec/failure-text.h"
#include "deploy/guest-exec/options.h"
#include "deploy/guest-exec/parser-client.h"

namespace {

using namespace cordon;

constexpr int NO_RESULT = 255;
constexpr int USAGE = 2;

void print(const std::string& bytes, FILE* stream) {
  const std::string text = isatty(fileno(stream)) != 0 ? deploy::escapeForTerminal(bytes) : bytes;
  std::fwrite(text.data(), 1, text.size(), stream);
}

int fail(const std::string& step, const std::string& why) {
  std::fprintf(stderr, "cordon-guest-exec: %s: %s\n", step.c_str(), why.c_str());
  return NO_RESULT;
}

int run(const deploy::ExecOptions& options) {
  auto io = kj::setupAsyncIo();
  const std::uint64_t waitMs = std::uint64_t{options.waitSeconds} * 1000;
  deploy::ParserClient client(io, options.parserPath, waitMs);
  auto channel = client.openChannel(options.cid, options.uid);
  if (auto failure = client.waitReady(channel, waitMs))
    return fail("the guest is not ready", *failure);
  deploy::ExecRequest request;
  request.argv = options.argv;
  request.user = options.user;
  request.commandMs = std::uint64_t{options.timeoutSeconds} * 1000;
  deploy::ExecOutcome outcome = client.exec(channel, request);
  if (outcome.failure) return fail("no result", *outcome.failure);
  print(outcome.out, stdout);
  print(outcome.err, stderr);
  if (std::fflush(stdout) != 0) return fail("no result", "standard output takes no more");
  return outcome.rc < 0 ? 128 - outcome.rc : outcome.rc & 0xff;
}

}  // namespace

int main(int argc, char** argv) {
  auto options = deploy::parseOptions({argv + 1, argv + argc});
  if (std::holds_alternative<deploy::HelpOptions>(options)) {
    std::fputs(deploy::USAGE_TEXT, stdout);
    return 0;
  }
  if (const auto* error = std::get_if<deploy::UsageError>(&options)) {
    std::fprintf(stderr, "cordon-guest-exec: %s\n", deploy::escapeForTerminal(error->text).c_str());
    return USAGE;
  }
  try {
    return run(std::get<deploy::ExecOptions>(options));
  } catch (const kj::Exception& error) {
    // The parser's texts never reach us, only codes; ours may be shown, escaped.
    const std::string text = error.getDescription().cStr();
    return fail("the parser", deploy::escapeForTerminal(text));
  } catch (const std::exception& error) {
    return fail("internal", error.what());
  }
}
