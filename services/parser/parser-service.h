// protocols/parser.capnp, served: checks arguments, runs the channel client, writes results.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <kj/async-io.h>
#include <kj/refcount.h>
#include <kj/time.h>
#include <kj/timer.h>

#include "common/log/log.h"
#include "protocols/parser.capnp.h"
#include "services/parser/guest-client.h"

namespace cordon::parser {

inline constexpr std::size_t MAX_CHANNELS = 256;
inline constexpr std::size_t MAX_OPERATIONS = 64;
// Of files of records, which are operations too: a reader may take 50 MiB.
inline constexpr std::size_t MAX_READINGS = 4;
// A poller may take 26 MiB (polled-source.h: news, uneven records), and four connections.
inline constexpr std::size_t MAX_POLLERS = 8;

struct ServiceFacts {
  std::string version;
  std::string policy;
  std::array<kj::byte, 32> policySha256{};
};

struct ServiceOptions {
  std::string socketsDirectory;  // a guest listens at <socketsDirectory>/<cid>/vsock.sock
  bool allowRootPeer = false;
  ServiceFacts facts = {};
  ClientOptions client = {};
  // The time of day, for what arrived when.
  const kj::Clock& wallClock = kj::systemPreciseCalendarClock();
};

// What all connections and channels of a parser share; the references must outlive it.
class ParserState;

// The bootstrap of every connection: each gets a client of the same service, so the bounds hold for
// all of them together.
class ParserService {
 public:
  ParserService(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer, IdSource& ids,
                const log::Log& log, ServiceOptions options);
  ~ParserService() noexcept(false);
  KJ_DISALLOW_COPY(ParserService);

  protocols::Parser::Client client();

  [[nodiscard]] std::size_t channels() const;
  [[nodiscard]] std::size_t operations() const;

 private:
  kj::Own<ParserState> state;
  protocols::Parser::Client server;
};

}  // namespace cordon::parser
