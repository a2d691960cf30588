// Goal: our half conversions give the bits of the hardware's.
// Method: every half, and every float at which rounding changes its mind, against F16C.
#include "base/f16.h"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

namespace vericache {
namespace {

__attribute__((target("f16c"))) float HardwareF16ToF32(uint16_t half) {
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
}

__attribute__((target("f16c"))) uint16_t HardwareF32ToF16(float value) {
  return static_cast<uint16_t>(
      _mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT)) & 0xffff);
}

class F16 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!__builtin_cpu_supports("f16c")) GTEST_SKIP() << "no F16C to compare with";
  }
  static bool RoundsAlike(float value) {
    const uint16_t got = F32ToF16(value);
    if (std::isnan(value)) return (got & 0x7fff) > 0x7c00;  // any NaN stays some NaN
    return got == HardwareF32ToF16(value);
  }
};

TEST_F(F16, WidensEveryHalfExactly) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const float got = F16ToF32(static_cast<uint16_t>(half));
    const float expected = HardwareF16ToF32(static_cast<uint16_t>(half));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << half;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(expected)) << half;
    }
  }
}

// Between two neighbouring halves the result may change only at the middle; around it and at both
// ends one float bit decides.
TEST_F(F16, RoundsAtEveryMiddleAsHardwareDoes) {
  for (uint32_t half = 0; half < 0x7c00; ++half) {
    const float low = HardwareF16ToF32(static_cast<uint16_t>(half));
    const float high =
        half + 1 == 0x7c00 ? 65536.0f : HardwareF16ToF32(static_cast<uint16_t>(half + 1));
    for (const float centre : {low, low + (high - low) / 2, high}) {
      const uint32_t bits = std::bit_cast<uint32_t>(centre);
      for (const uint32_t sign : {0u, 0x80000000u}) {
        for (uint32_t near = bits == 0 ? 0 : bits - 1; near <= bits + 1; ++near) {
          ASSERT_TRUE(RoundsAlike(std::bit_cast<float>(near | sign))) << "bits " << (near | sign);
        }
      }
    }
  }
}

TEST_F(F16, RoundsRandomFloatsAsHardwareDoes) {
  std::mt19937 random(1);
  for (int i = 0; i < 1 << 20; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    ASSERT_TRUE(RoundsAlike(std::bit_cast<float>(bits))) << "bits " << bits;
  }
}

TEST(Bf16, IsTheUpperHalfOfAFloat) {
  EXPECT_EQ(Bf16ToF32(0x3f80), 1.0f);
  EXPECT_EQ(Bf16ToF32(0xc040), -3.0f);
  EXPECT_EQ(std::bit_cast<uint32_t>(Bf16ToF32(0x8001)), 0x80010000u);  // subnormals are kept
  EXPECT_TRUE(std::isinf(Bf16ToF32(0x7f80)));
  EXPECT_TRUE(std::isnan(Bf16ToF32(0x7fc0)));
}

}  // namespace
}  // namespace vericache
