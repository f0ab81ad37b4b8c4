// The channel client over a hybrid socket, as a ConformanceClient: an event loop of its own, so one
// a thread.
#pragma once

#include <kj/async-io.h>

#include "services/parser/guest-client.h"
#include "services/parser/hybrid-dial.h"
#include "tests/support/conformance.h"
#include "tests/support/streams.h"

namespace cordon::tests {

class CoreClient final : public ConformanceClient {
 public:
  explicit CoreClient(parser::HybridAddress address, parser::ClientOptions options = {});
  ~CoreClient() noexcept override = default;

  parser::Outcome<parser::Pong> ping() override;
  parser::Outcome<parser::Finished> exec(channel::Exec request,
                                         const std::optional<std::string>& input,
                                         std::string& output, std::string& errors,
                                         std::optional<channel::Id> id) override;
  parser::Outcome<parser::Content> readFile(channel::ReadFile request,
                                            std::string& content) override;
  parser::Outcome<parser::Written> writeFile(channel::WriteFile request,
                                             const std::string& content) override;
  parser::Outcome<parser::Polled> poll(const channel::Id& target) override;
  parser::Outcome<parser::DiagReport> diag(std::int64_t maxEntries) override;
  std::optional<unsigned> exchanges() override { return counted.connections; }

  parser::Outcome<parser::Pong> pinSession();
  RecordedVerdicts verdicts;

 private:
  struct Counted final : parser::Transport {
    explicit Counted(parser::Transport& inner) : transport(inner) {}
    kj::Promise<Connection> connect() override {
      ++connections;
      return transport.connect();
    }
    parser::Transport& transport;
    unsigned connections = 0;
  };

  kj::AsyncIoContext io = kj::setupAsyncIo();
  parser::HybridTransport transport;
  Counted counted{transport};
  parser::KernelIdSource ids;
  parser::GuestClient client;
};

}  // namespace cordon::tests
