// The parser as it is shipped, but for its bootstrap: the first `describe` makes one attempt of the
// catalogue of policy/testing, as code would that a guest smuggled in. For tests/integration; never
// installed.
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <variant>

#include "policy/testing/catalogue.h"
#include "services/parser/options.h"
#include "services/parser/serve-file.h"
#include "services/parser/serve.h"

namespace cordon::parser {
namespace {

class BreachedParser final : public protocols::Parser::Server {
 public:
  BreachedParser(long (*hostileAttempt)(), protocols::Parser::Client innerParser)
      : attempt(hostileAttempt), inner(kj::mv(innerParser)) {}

  kj::Promise<void> describe(DescribeContext context) override {
    if (attempt != nullptr) attempt();
    return context.tailCall(inner.describeRequest());
  }
  kj::Promise<void> openChannel(OpenChannelContext context) override {
    auto request = inner.openChannelRequest();
    request.setGuest(context.getParams().getGuest());
    return context.tailCall(kj::mv(request));
  }

 private:
  long (*attempt)();
  protocols::Parser::Client inner;
};

class BreachedFile final : public protocols::RecordFile::Server {
 public:
  BreachedFile(long (*hostileAttempt)(), protocols::RecordFile::Client innerFile)
      : attempt(hostileAttempt), inner(kj::mv(innerFile)) {}

  kj::Promise<void> describe(DescribeContext context) override {
    if (attempt != nullptr) attempt();
    return context.tailCall(inner.describeRequest());
  }

 private:
  long (*attempt)();
  protocols::RecordFile::Client inner;
};
}  // namespace
}  // namespace cordon::parser

int main(int argc, char** argv) {
  using namespace cordon::parser;
  const char* const wanted = std::getenv("CORDON_ATTEMPT");
  long (*attempt)() = nullptr;
  for (const auto& candidate : cordon::policy::testing::catalogue()) {
    if (wanted != nullptr && std::string_view(wanted) == candidate.name) attempt = candidate.run;
  }
  if (wanted == nullptr || (attempt == nullptr && std::string_view(wanted) != "none")) {
    std::fputs("breached-parser: CORDON_ATTEMPT names no attempt\n", stderr);
    return 2;
  }
  const auto options = parseOptions({argv + 1, argv + argc});
  if (const auto* read = std::get_if<ReadOptions>(&options)) {
    return serveFile(*read, [attempt](kj::Own<RecordFileServer> file) {
      return cordon::protocols::RecordFile::Client(kj::heap<BreachedFile>(attempt, kj::mv(file)));
    });
  }
  if (!std::holds_alternative<ServeOptions>(options)) return 2;
  return serve(std::get<ServeOptions>(options),
               [attempt](ParserService& service) -> cordon::protocols::Parser::Client {
                 return kj::heap<BreachedParser>(attempt, service.client());
               });
}
