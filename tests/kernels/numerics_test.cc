// The scalar steps that every path shares.
//
// Goal: exp2_ has the accuracy and the edges that docs/numerics.md states; rounding is to even.
// Method: binary64 over a dense sweep; the edges one by one.
#include "kernels/numerics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/same_bits.h"

namespace vericache::kernels {
namespace {

using testing_support::SameBits;

TEST(Exp2, StaysWithinItsErrorBound) {
  double worst = 0;
  for (int i = 0; i <= 1'000'000; ++i) {
    const float t = -static_cast<float>(i) * 1e-4f;
    const double exact = std::exp2(double{t});
    worst = std::fmax(worst, std::fabs(double{Exp2(t)} - exact) / exact);
  }
  EXPECT_LT(worst, 1.51e-7);
  EXPECT_GT(worst, 5e-8);  // below that, this test has lost its grip
}

TEST(Exp2, IsExactAtIntegers) {
  for (int n = 0; n <= 100; ++n) {
    EXPECT_TRUE(SameBits(Exp2(static_cast<float>(-n)), std::ldexp(1.0f, -n))) << n;
  }
}

TEST(Exp2, IsZeroBelowItsFloorAndForNan) {
  for (const float t : {-100.00001f, -127.0f, -150.5f, -1e10f, -3e38f, -HUGE_VALF, std::nanf("")}) {
    EXPECT_TRUE(SameBits(Exp2(t), 0.0f)) << t;
  }
  EXPECT_GT(Exp2(-100.0f), 0.0f);
}

TEST(RoundCode, RoundsToNearestAndTiesToEven) {
  const float values[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 0.49999997f, 32766.5f, -32767.4f};
  for (const float x : values) {
    EXPECT_EQ(RoundCode(x, 1.0f), static_cast<int16_t>(std::nearbyint(x))) << x;
  }
}

TEST(RoundCode, RoundsTheExactProductOnce) {
  // 3 * fl(1/6) is just above 0.5, and its rounded product is 0.5: rounding twice would give 0.
  const float sixth = 1.0f / 6.0f;
  ASSERT_EQ(3.0f * sixth, 0.5f);
  ASSERT_GT(3.0 * double{sixth}, 0.5);
  EXPECT_EQ(RoundCode(3.0f, sixth), 1);
}

TEST(TreeSum, AddsHalvesOntoEachOther) {
  float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = i == 0 ? 1.0f : 0x1p-24f;
  // Lane 0 gains 2^-24 alone in the first step, which rounds away; pairs of them do not.
  float expected = 1.0f;
  expected += 0x1p-24f;             // 8
  expected += 0x1p-24f + 0x1p-24f;  // 4
  expected += 4 * 0x1p-24f;         // 2
  expected += 8 * 0x1p-24f;         // 1
  EXPECT_TRUE(SameBits(TreeSum(lanes), expected));
}

TEST(IsFinite, KnowsInfinityAndNan) {
  EXPECT_TRUE(IsFinite(0.0f) && IsFinite(-3.4e38f) && IsFinite(1e-45f));
  EXPECT_FALSE(IsFinite(HUGE_VALF) || IsFinite(-HUGE_VALF) || IsFinite(std::nanf("")));
}

TEST(ScoreScale, IsLog2eOverTheRootOfTheHeadSize) {
  EXPECT_FLOAT_EQ(ScoreScale(64), 1.4426950408889634f / 8.0f);
  EXPECT_TRUE(SameBits(kLog2E, static_cast<float>(std::log2(std::exp(1.0)))));
}

}  // namespace
}  // namespace vericache::kernels
