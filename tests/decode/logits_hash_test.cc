// Goal: equal rows give equal hashes; one bit, another order or a missing row gives another one.
// Method: examples.

#include "decode/logits_hash.h"

#include <gtest/gtest.h>

#include <vector>

namespace vericache::decode {
namespace {

uint64_t HashRows(const std::vector<std::vector<float>>& rows) {
  uint64_t hash = 0;
  for (const auto& row : rows) hash = HashLogits(row, hash);
  return hash;
}

TEST(LogitsHash, SeesEveryBitAndTheOrder) {
  const std::vector<float> a = {1.0f, 2.0f, -3.0f};
  std::vector<float> b = a;
  EXPECT_EQ(HashRows({a, a}), HashRows({a, b}));
  b[2] = -0x1.800002p+1f;
  EXPECT_NE(HashRows({a, a}), HashRows({a, b}));
  EXPECT_NE(HashRows({a, b}), HashRows({b, a}));
  EXPECT_NE(HashRows({a}), HashRows({a, a}));
  EXPECT_NE(HashRows({a}), 0u);
}

}  // namespace
}  // namespace vericache::decode
