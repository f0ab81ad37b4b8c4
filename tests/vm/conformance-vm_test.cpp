// The conformance suite against the agent in a real guest: through the parser's RPC, its sandbox,
// and cordon-vsock.
#include <filesystem>
#include <memory>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "common/channel/limits.h"
#include "tests/support/conformance.h"
#include "tests/support/hybrid-relay.h"
#include "tests/support/rpc-client.h"
#include "tests/vm/booted-range.h"

namespace cordon::vm {
namespace {

class ConformanceInAGuest : public testing::TestWithParam<tests::ConformanceCase> {
 protected:
  static void SetUpTestSuite() { range = std::make_unique<BootedRange>(); }
  static void TearDownTestSuite() { range.reset(); }
  static std::unique_ptr<BootedRange> range;
};
std::unique_ptr<BootedRange> ConformanceInAGuest::range;

// The parser does not tell its connections: for a case that counts them a relay stands before
// cordon-vsock, in the directory of a second guest in the parser's view.
void runCounted(BootedRange& range, const tests::ConformanceCase& one,
                const tests::Vocabulary& guest) {
  const std::uint32_t relayCid = range.cid(0) + 1;
  const std::filesystem::path real = range.guestSocket(0);
  const auto folder = real.parent_path().parent_path() / std::to_string(relayCid);
  std::filesystem::create_directory(folder);
  ASSERT_EQ(::chmod(folder.c_str(), 0711), 0);
  {
    const tests::HybridRelay relay({.hybrid = folder / "vsock.sock",
                                    .agent = real,
                                    .uid = range.uid(0),
                                    .port = channel::VSOCK_PORT});
    tests::RpcClient client(range.io(), range.parserSocket(), {relayCid, range.uid(0)},
                            [&relay]() { return relay.connections(); });
    one.run(client, guest);
  }
  std::filesystem::remove(folder);
}

TEST_P(ConformanceInAGuest, Holds) {
  const tests::Vocabulary guest{.user = "postgres", .directory = "/srv"};
  if (GetParam().countsExchanges) {
    runCounted(*range, GetParam(), guest);
  } else {
    tests::RpcClient client(range->io(), range->parserSocket(), {range->cid(0), range->uid(0)});
    GetParam().run(client, guest);
  }
  if (HasFailure()) ADD_FAILURE() << range->logs();
}

INSTANTIATE_TEST_SUITE_P(All, ConformanceInAGuest, testing::ValuesIn(tests::conformanceCases()),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace cordon::vm
