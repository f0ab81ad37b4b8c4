#include "tests/support/core-client.h"

#include <utility>

namespace cordon::tests {

CoreClient::CoreClient(parser::HybridAddress address, parser::ClientOptions options)
    : transport(*io.lowLevelProvider, io.provider->getTimer(), std::move(address), true),
      client(counted, io.provider->getTimer(), ids, verdicts, options) {}

parser::Outcome<parser::Pong> CoreClient::ping() {
  return client.ping(ids.next(), {}).wait(io.waitScope);
}

parser::Outcome<parser::Pong> CoreClient::pinSession() {
  return client.pinSession(ids.next(), {}).wait(io.waitScope);
}

parser::Outcome<parser::Finished> CoreClient::exec(channel::Exec request,
                                                   const std::optional<std::string>& input,
                                                   std::string& output, std::string& errors,
                                                   std::optional<channel::Id> id) {
  MemorySource source(input.value_or(""));
  MemorySink out;
  MemorySink err;
  kj::Maybe<parser::BulkSource&> from;
  if (input) from = source;
  auto outcome =
      client.exec(id.value_or(ids.next()), std::move(request), from, out, err).wait(io.waitScope);
  output = std::move(out.content);
  errors = std::move(err.content);
  return outcome;
}

parser::Outcome<parser::Content> CoreClient::readFile(channel::ReadFile request,
                                                      std::string& content) {
  MemorySink sink;
  auto outcome = client.readFile(ids.next(), std::move(request), sink).wait(io.waitScope);
  content = std::move(sink.content);
  return outcome;
}

parser::Outcome<parser::Written> CoreClient::writeFile(channel::WriteFile request,
                                                       const std::string& content) {
  MemorySource source(content);
  return client.writeFile(ids.next(), std::move(request), source).wait(io.waitScope);
}

parser::Outcome<parser::Polled> CoreClient::poll(const channel::Id& target) {
  return client.poll(ids.next(), target, {}).wait(io.waitScope);
}

parser::Outcome<parser::DiagReport> CoreClient::diag(std::int64_t maxEntries) {
  return client.diag(ids.next(), maxEntries, {}).wait(io.waitScope);
}

}  // namespace cordon::tests
