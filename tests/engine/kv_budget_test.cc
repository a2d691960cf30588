// Goal: the full KV takes what was asked for, or what a container's memory leaves.
// Method: limits made up by the test.

#include "engine/kv_budget.h"

#include <gtest/gtest.h>

namespace vericache::engine {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(KvBudget, IsWhatWasAskedForOrWhatIsLeft) {
  const auto of = [](size_t limit) {
    return KvBudget(1000 * kMiB, 100 * kMiB, {.memory_bytes = limit * kMiB});
  };
  EXPECT_EQ(of(4000), 1000 * kMiB);
  EXPECT_EQ(of(1228), 1000 * kMiB);
  EXPECT_EQ(of(1227), 999 * kMiB);
  EXPECT_EQ(of(229), 1 * kMiB);
  EXPECT_EQ(of(228), 0u);
  EXPECT_EQ(of(10), 0u);
}

}  // namespace
}  // namespace vericache::engine
