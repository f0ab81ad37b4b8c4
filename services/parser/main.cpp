// cordon-parser: reads what an attacker may have written, so that nobody who holds anything has to.
#include <cstdio>
#include <cstdlib>
#include <variant>

#include "common/sandbox/sandbox.h"
#include "services/parser/options.h"
#include "services/parser/serve-file.h"
#include "services/parser/serve.h"

int main(int argc, char** argv) {
  using namespace cordon::parser;
  const auto options = parseOptions({argv + 1, argv + argc});
  if (std::holds_alternative<PrintHelp>(options)) {
    std::fputs(USAGE, stdout);
    return EXIT_SUCCESS;
  }
  if (std::holds_alternative<PrintVersion>(options)) {
    std::puts("cordon-parser " CORDON_VERSION);
    return EXIT_SUCCESS;
  }
  if (const auto* print = std::get_if<PrintPolicy>(&options)) {
    const auto& policy = print->role == Role::READ ? readPolicy() : channelPolicy();
    std::fputs(cordon::sandbox::printable(policy).c_str(), stdout);
    return EXIT_SUCCESS;
  }
  if (const auto* error = std::get_if<UsageError>(&options)) {
    std::fprintf(stderr, "cordon-parser: %s\n%s", error->text.c_str(), USAGE);
    return 2;
  }
  if (const auto* read = std::get_if<ReadOptions>(&options)) {
    return serveFile(*read, [](kj::Own<RecordFileServer> file) {
      return cordon::protocols::RecordFile::Client(kj::mv(file));
    });
  }
  return serve(std::get<ServeOptions>(options),
               [](ParserService& service) { return service.client(); });
}
