// The conformance suite through the RPC of the shipped parser, sealed, against the shipped agent.
#include <memory>
#include <optional>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/integration/sealed-parser.h"
#include "tests/support/conformance.h"
#include "tests/support/guest-process.h"
#include "tests/support/hybrid-relay.h"
#include "tests/support/rpc-client.h"

namespace cordon::tests {
namespace {

constexpr std::uint32_t CID = 17;

class SealedConformance : public testing::TestWithParam<ConformanceCase> {};

TEST_P(SealedConformance, Holds) {
  if (::geteuid() != 0) GTEST_SKIP() << "SKIPPED(needs:root): starts a process as a launcher does";
  SealedParser sealed({.arguments = {"--allow-root-peer"}});
  ASSERT_TRUE(sealed.waitSealed()) << sealed.log();
  const std::string socket = sealed.guestSocket(CID);
  const GuestProcess agent(CORDON_GUEST_BINARY, socket + ".agent");
  const HybridRelay relay({.hybrid = socket, .agent = socket + ".agent", .uid = 0});
  auto io = kj::setupAsyncIo();
  {
    RpcClient client(io, sealed.socket(), {.cid = CID, .uid = 0},
                     [&relay]() { return relay.connections(); });
    GetParam().run(client, {.scratch = socket.substr(0, socket.rfind('/'))});
  }
  if (HasFailure()) ADD_FAILURE() << sealed.log();
}

INSTANTIATE_TEST_SUITE_P(All, SealedConformance, testing::ValuesIn(conformanceCases()),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace cordon::tests
