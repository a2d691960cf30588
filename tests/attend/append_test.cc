// Goal: new rows are stored in their slot, encoded by the definition, and nothing else is touched.
#include "attend/append.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/kv_layout.h"
#include "tests/support/literal_attention.h"

namespace vericache::attend {
namespace {

constexpr int kHeadDim = 32;
constexpr int kSlots = 64;
constexpr int16_t kUntouched = 12345;

struct Stored {
  std::vector<int16_t> keys = std::vector<int16_t>(kHeadDim * kSlots, kUntouched);
  std::vector<int16_t> values = std::vector<int16_t>(kHeadDim * kSlots, kUntouched);
  std::vector<float> key_steps = std::vector<float>(kSlots, -1.0f);
  std::vector<float> value_steps = std::vector<float>(kSlots, -1.0f);

  kv::RowSlot At(int slot) {
    return {keys.data(), values.data(), key_steps.data(), value_steps.data(), slot};
  }
};

std::vector<float> Ramp() {
  std::vector<float> x(kHeadDim);
  for (int d = 0; d < kHeadDim; ++d) x[static_cast<size_t>(d)] = 0.37f * static_cast<float>(d - 9);
  return x;
}

TEST(Append, StoresCodesAndStepInTheSlotAlone) {
  const std::vector<float> x = Ramp();
  const auto key = testing_support::EncodeLiterally(x.data(), kHeadDim, false);
  const auto value = testing_support::EncodeLiterally(x.data(), kHeadDim, true);
  for (const int slot : {0, 15, 16, 31, 37, 63}) {
    Stored stored;
    EXPECT_TRUE(AppendKey(kernels::RefKernels(), x.data(), kHeadDim, stored.At(slot)));
    EXPECT_TRUE(AppendValue(kernels::RefKernels(), x.data(), kHeadDim, stored.At(slot)));
    for (int s = 0; s < kSlots; ++s) {
      const auto i = static_cast<size_t>(s);
      EXPECT_EQ(stored.key_steps[i], s == slot ? key.step : -1.0f);
      EXPECT_EQ(stored.value_steps[i], s == slot ? value.step : -1.0f);
      for (int d = 0; d < kHeadDim; ++d) {
        const auto c = static_cast<size_t>(d);
        EXPECT_EQ(stored.keys[kernels::KeyIndex(kHeadDim, s, d)],
                  s == slot ? key.codes[c] : kUntouched);
        EXPECT_EQ(stored.values[kernels::ValueIndex(kHeadDim, s, d)],
                  s == slot ? value.codes[c] : kUntouched);
      }
    }
  }
}

TEST(Append, StoresZeroForWhatIsNotFiniteAndSaysSo) {
  for (const kernels::KernelTable* kernels : kernels::AvailableKernels()) {
    for (const float odd : {NAN, INFINITY, -INFINITY}) {
      std::vector<float> x = Ramp();
      x[5] = odd;
      Stored stored;
      EXPECT_FALSE(AppendKey(*kernels, x.data(), kHeadDim, stored.At(3)));
      EXPECT_FALSE(AppendValue(*kernels, x.data(), kHeadDim, stored.At(3)));
      EXPECT_EQ(stored.keys[kernels::KeyIndex(kHeadDim, 3, 5)], 0);
      EXPECT_EQ(stored.values[kernels::ValueIndex(kHeadDim, 3, 5)], 0);
      EXPECT_NE(stored.keys[kernels::KeyIndex(kHeadDim, 3, 6)], 0);
    }
  }
}

}  // namespace
}  // namespace vericache::attend
