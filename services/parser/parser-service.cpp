#include "services/parser/parser-service.h"

#include <cstdio>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>

#include <kj/debug.h>

#include "common/ipc/error.h"
#include "services/parser/guest-channel.h"
#include "services/parser/parser-state.h"
#include "services/parser/record-results.h"
#include "services/parser/requests.h"

namespace cordon::parser {
namespace {

class ParserServer final : public protocols::Parser::Server {
 public:
  explicit ParserServer(kj::Own<ParserState> sharedState)
      : state(kj::mv(sharedState)),
        badAddress(kj::heap<RefusedChannel>(ArgumentError::BAD_ADDRESS)),
        tooMany(kj::heap<RefusedChannel>(ArgumentError::TOO_MANY)) {}

  kj::Promise<void> describe(DescribeContext context) override {
    const ServiceFacts& facts = state->options.facts;
    auto to = context.getResults().initFacts();
    to.setVersion(facts.version.c_str());
    to.setRole("channel");
    to.setPolicy(facts.policy.c_str());
    to.setPolicySha256(kj::arrayPtr(facts.policySha256.data(), facts.policySha256.size()));
    writeReaderFacts(to.initReader());
    return kj::READY_NOW;
  }

  kj::Promise<void> openChannel(OpenChannelContext context) override {
    const auto guest = context.getParams().getGuest();
    const auto address =
        readAddress(guest, state->options.socketsDirectory, state->options.allowRootPeer);
    // openChannel itself has no failure: a channel that is refused says so at each operation.
    protocols::GuestChannel::Client channel = badAddress;
    if (address && state->channels >= MAX_CHANNELS) {
      channel = tooMany;
    } else if (address) {
      channel = makeGuestChannel(kj::addRef(*state), guest.getCid(), *address);
    }
    context.getResults().setChannel(kj::mv(channel));
    return kj::READY_NOW;
  }

 private:
  kj::Own<ParserState> state;
  protocols::GuestChannel::Client badAddress;
  protocols::GuestChannel::Client tooMany;
};
}  // namespace

ParserService::ParserService(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer, IdSource& ids,
                             const log::Log& log, ServiceOptions options)
    : state(kj::refcounted<ParserState>(io, timer, ids, log, std::move(options))),
      server(kj::heap<ParserServer>(kj::addRef(*state))) {}
ParserService::~ParserService() noexcept(false) = default;

protocols::Parser::Client ParserService::client() {
  return server;
}
std::size_t ParserService::channels() const {
  return state->channels;
}
std::size_t ParserService::operations() const {
  return state->operations;
}

}  // namespace cordon::parser
