// main() of every GoogleTest binary. ctest must never show a binary as skipped while one of its
// cases failed, nor as passed where nothing ran: 1 = a case failed, 77 = each case was skipped or
// there was none, 0 = otherwise. The reasons of single skips stand in the output
// ("SKIPPED(<reason>)"), from where tests/run collects them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const int result = RUN_ALL_TESTS();
  if (result != 0 || testing::GTEST_FLAG(list_tests)) return result;
  const auto* unit = testing::UnitTest::GetInstance();
  return unit->successful_test_count() == 0 ? 77 : 0;
}
