// Goal: whatever is not finite is found, and only that.
// Method: every odd value at every place.
#include "model/finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace vericache::model {
namespace {

const float kOdd[] = {NAN, -NAN, INFINITY, -INFINITY};
const float kLargest = std::numeric_limits<float>::max();

TEST(AreFinite, FindsNanAndInfinityAnywhere) {
  std::vector<float> x(37, -kLargest);
  EXPECT_TRUE(AreFinite(x.data(), 37));
  for (size_t i = 0; i < x.size(); ++i) {
    for (const float odd : kOdd) {
      std::vector<float> y = x;
      y[i] = odd;
      EXPECT_FALSE(AreFinite(y.data(), 37));
      EXPECT_EQ(AreFinite(y.data(), static_cast<int>(i)), true);
    }
  }
}

TEST(ZeroNonFinite, ReplacesNothingElse) {
  std::vector<float> x = {1.0f, NAN, -kLargest, INFINITY, 0.0f, -INFINITY};
  EXPECT_FALSE(ZeroNonFinite(x.data(), 6));
  EXPECT_EQ(x, (std::vector<float>{1.0f, 0.0f, -kLargest, 0.0f, 0.0f, 0.0f}));
  EXPECT_TRUE(ZeroNonFinite(x.data(), 6));
}

TEST(IsEncodable, AgreesWithTheKeyRule) {
  const kernels::KernelTable& ref = kernels::RefKernels();
  for (const float large : {1.0f, 0x1p58f, 0x1p59f, 0x1p60f, 0x1p61f, 0x1p62f, kLargest}) {
    std::vector<float> x(kernels::kMaxHeadDim, large);
    int16_t codes[kernels::kMaxHeadDim];
    bool is_finite = true;
    ref.encode_key(x.data(), kernels::kMaxHeadDim, codes, &is_finite);
    EXPECT_EQ(IsEncodable(ref, x.data(), kernels::kMaxHeadDim), is_finite) << large;
  }
  for (const float odd : kOdd) EXPECT_FALSE(IsEncodable(ref, &odd, 1));
}

}  // namespace
}  // namespace vericache::model
