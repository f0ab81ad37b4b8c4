// The conformance suite against the agent in a real guest: through the parser's RPC, its sandbox,
// and cordon-vsock.
#include <memory>

#include <gtest/gtest.h>

#include "tests/support/conformance.h"
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

TEST_P(ConformanceInAGuest, Holds) {
  tests::RpcClient client(range->io(), range->parserSocket(), {range->cid(0), range->uid(0)});
  GetParam().run(client, {.user = "postgres", .directory = "/srv"});
  if (HasFailure()) ADD_FAILURE() << range->logs();
}

INSTANTIATE_TEST_SUITE_P(All, ConformanceInAGuest, testing::ValuesIn(tests::conformanceCases()),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace cordon::vm
