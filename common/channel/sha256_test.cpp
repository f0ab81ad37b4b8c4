#include "common/channel/sha256.h"

#include <string>

#include <gtest/gtest.h>

namespace cordon::channel {
namespace {

// FIPS 180-4 examples.
TEST(Sha256, MatchesPublishedDigests) {
  EXPECT_EQ(toHex(sha256Of(std::string_view{})),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(toHex(sha256Of(std::string_view{"abc"})),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(toHex(sha256Of(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, CopyContinuesFromTheSameState) {
  Sha256Hasher whole;
  whole.update(std::as_bytes(std::span(std::string_view("a"))));
  Sha256Hasher copy = whole;
  whole.update(std::as_bytes(std::span(std::string_view("bc"))));
  EXPECT_EQ(toHex(whole.finish()), toHex(sha256Of(std::string_view("abc"))));
  EXPECT_EQ(toHex(copy.finish()), toHex(sha256Of(std::string_view("a"))));
}

TEST(Hex, ReadsOnlyExactLowerCase) {
  const std::string good = "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a10f";
  ASSERT_TRUE(idFromHex(good));
  EXPECT_EQ(toHex(*idFromHex(good)), good);
  EXPECT_FALSE(idFromHex(good + "0"));
  EXPECT_FALSE(idFromHex(good + "\n"));
  EXPECT_FALSE(idFromHex(good.substr(1)));
  EXPECT_FALSE(idFromHex("A1a1a1a1a1a1a1a1a1a1a1a1a1a1a10f"));
  EXPECT_FALSE(idFromHex("g1a1a1a1a1a1a1a1a1a1a1a1a1a1a10f"));
  EXPECT_FALSE(sha256FromHex(good));
  EXPECT_EQ(toHex(*sha256FromHex(good + good)), good + good);
}

}  // namespace
}  // namespace cordon::channel
