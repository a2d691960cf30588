// Goal: a model that cannot fit is refused with the figures before anything is read.
// Method: limits made up by the test.

#include "model/memory_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vericache::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MemoryCheck, RefusesWhatIsLargerThanWhatIsFree) {
  const MachineLimits limits{
      .n_cores = 1, .memory_bytes = 2000000000, .available_bytes = 1500000000};
  EXPECT_TRUE(CheckMemory("x.gguf", 1500000000, limits).has_value());
  const Status refused = CheckMemory("x.gguf", 1501000000, limits);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("x.gguf"), HasSubstr("1501 MB"),
                                             HasSubstr("2000 MB"), HasSubstr("1500 MB are free")));
}

}  // namespace
}  // namespace vericache::model
