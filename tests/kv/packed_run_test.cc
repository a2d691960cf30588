// Goal: a run holds its slots in every format: exact in I16, within half a step in the others;
// sizes add up; log weights are the same everywhere.
// Method: random slots packed and read back against binary64 bounds; sizes against the
// definition.

#include "kv/packed_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/hadamard.h"
#include "kernels/kv_layout.h"
#include "tests/support/kv_model.h"
#include "tests/support/random_kv.h"

namespace vericache::kv {
namespace {

using kernels::KvFormat;
using testing_support::KvContent;

HeadSlots AnySlots(testing_support::Rng& rng, int head_dim, int n_slots, KvContent content) {
  HeadSlots slots(head_dim);
  std::vector<float> key(static_cast<size_t>(head_dim));
  std::vector<float> value(key.size());
  for (int i = 0; i < n_slots; ++i) {
    testing_support::NextVector(rng, content, key);
    testing_support::NextVector(rng, content, value);
    slots.Encode(kernels::RefKernels(), {.key = key.data(), .value = value.data()}, 1, Position{i});
  }
  return slots;
}

// The step of a range of values, and the rounding that binary32 adds.
struct Tolerance {
  double low = INFINITY;
  double high = -INFINITY;
  double slack = 0;  // what rotating back and forth may add
  void Add(float x) {
    low = std::min(low, static_cast<double>(x));
    high = std::max(high, static_cast<double>(x));
  }
  double Half(KvFormat format) const {
    const double n_levels = std::exp2(kernels::CodeBits(format)) - 1;
    const double magnitude = std::max(std::abs(low), std::abs(high));
    return 0.5 * (high - low) / n_levels * 1.0001 + magnitude * 1e-6 + slack;
  }
};

PROPERTY(PackRun, StaysWithinHalfAStep, 24) {
  const KvFormat format = rng.OneOf({KvFormat::kQ8, KvFormat::kQ4, KvFormat::kQ2});
  const int head_dim = rng.OneOf({16, 64, 80});
  const int n_slots = rng.OneOf({1, 2, 63, 64, 65, 130});
  const KvContent content = rng.OneOf({KvContent::kNormal, KvContent::kSmooth, KvContent::kTies,
                                       KvContent::kConstant, KvContent::kZero});
  const HeadSlots slots = AnySlots(rng, head_dim, n_slots, content);
  const bool is_rotated = rng.Chance(0.5);  // then what is rounded is what was rotated
  const auto rotate = [&](float* x) {
    if (is_rotated) kernels::Rotate(x, head_dim);
  };
  const auto dims = static_cast<size_t>(head_dim);
  const auto n = static_cast<size_t>(n_slots);
  std::vector<float> keys(n * dims);
  std::vector<float> values(n * dims);
  std::vector<Tolerance> key_ranges((n + 63) / 64 * dims);
  std::vector<Tolerance> value_ranges(n);
  for (size_t i = 0; i < n; ++i) {
    slots.Key(static_cast<int>(i), keys.data() + i * dims);
    slots.Value(static_cast<int>(i), values.data() + i * dims);
    rotate(keys.data() + i * dims);
    rotate(values.data() + i * dims);
    for (size_t dim = 0; dim < dims; ++dim) {
      key_ranges[i / 64 * dims + dim].Add(keys[i * dims + dim]);
      value_ranges[i].Add(values[i * dims + dim]);
    }
  }
  AlignedBuffer memory;
  const RunFormat run_format{.format = format, .head_dim = head_dim, .is_rotated = is_rotated};
  const auto largest = [](const std::vector<float>& x) {
    return std::abs(*std::max_element(x.begin(), x.end(),
                                      [](float a, float b) { return std::abs(a) < std::abs(b); }));
  };
  if (is_rotated) {
    for (Tolerance& range : key_ranges) range.slack = 1e-5 * largest(keys);
    for (Tolerance& range : value_ranges) range.slack = 1e-5 * largest(values);
  }
  const kernels::SlotRun run = PackRun(run_format, slots, memory);
  ASSERT_EQ(run.n_slots, (n_slots + 63) / 64 * 64);
  std::vector<float> key(dims);
  std::vector<float> value(dims);
  for (size_t i = 0; i < n; ++i) {
    UnpackSlot(run_format, run, static_cast<int>(i), key, value);
    rotate(key.data());
    rotate(value.data());
    for (size_t dim = 0; dim < dims; ++dim) {
      ASSERT_NEAR(key[dim], keys[i * dims + dim], key_ranges[i / 64 * dims + dim].Half(format));
      ASSERT_NEAR(value[dim], values[i * dims + dim], value_ranges[i].Half(format));
    }
  }
}

TEST(PackRun, ClampsWhatThePackedFormatsCannotHold) {
  testing_support::Rng rng(5);
  const HeadSlots slots = AnySlots(rng, 16, 64, KvContent::kHuge);
  AlignedBuffer memory;
  const RunFormat format{.format = KvFormat::kQ4, .head_dim = 16};
  const kernels::SlotRun run = PackRun(format, slots, memory);
  std::vector<float> key(16);
  std::vector<float> value(16);
  float max = 0.0f;
  for (int slot = 0; slot < 64; ++slot) {
    UnpackSlot(format, run, slot, key, value);
    for (const float x : key) max = std::max(max, std::abs(x));
    for (const float x : value) max = std::max(max, std::abs(x));
  }
  EXPECT_GT(max, 0x1p58f);
  EXPECT_LE(max, 0x1.01p59f);
}

// The sums of a rotation of the largest floats there are would be infinite, and NaN their
// difference: no value but a draft's, yet it would have no sign. (Keys so large have no norm.)
TEST(PackRun, ClampsBeforeItRotates) {
  std::vector<float> value(16, 3e38f);
  std::fill(value.begin() + 8, value.end(), -3e38f);
  HeadSlots slots(16);
  slots.Encode(kernels::RefKernels(), {.key = value.data(), .value = value.data()}, 1, Position{0});
  for (const KvFormat bits : {KvFormat::kQ8, KvFormat::kQ4, KvFormat::kQ2}) {
    AlignedBuffer memory;
    const RunFormat format{.format = bits, .head_dim = 16, .is_rotated = true};
    const kernels::SlotRun run = PackRun(format, slots, memory);
    std::vector<float> key(16);
    std::vector<float> read(16);
    UnpackSlot(format, run, 0, key, read);
    for (size_t dim = 0; dim < 16; ++dim) {
      // Clamped, and once more when all of it had become one coordinate.
      EXPECT_NEAR(read[dim], dim < 8 ? 0x1p57 : -0x1p57, 0x1p47) << dim;
    }
  }
}

TEST(PackRun, IsNothingWithoutSlots) {
  AlignedBuffer memory;
  const kernels::SlotRun run = PackRun({.head_dim = 16}, HeadSlots(16), memory);
  EXPECT_EQ(run.n_slots, 0);
  EXPECT_EQ(memory.size(), 0u);
}

TEST(SlotBytes, CountsCodesAndScales) {
  EXPECT_EQ(SlotBytes({.format = KvFormat::kI16, .head_dim = 64}, 65), 65u * (256 + 8));
  EXPECT_EQ(SlotBytes({.format = KvFormat::kQ8, .head_dim = 64}, 65),
            65u * 128 + 2 * 2 * 64 * 4 + 65u * 8);
  EXPECT_EQ(SlotBytes({.format = KvFormat::kQ4, .head_dim = 64}, 64),
            64u * 64 + 2 * 64 * 4 + 64u * 8);
  EXPECT_EQ(SlotBytes({.format = KvFormat::kQ2, .head_dim = 64}, 1), 32u + 2 * 64 * 4 + 8);
  EXPECT_EQ(SlotBytes({.format = KvFormat::kQ4, .head_dim = 64}, 0), 0u);
}

TEST(RunFormat, KnowsTheHeadsItCanPack) {
  const auto possible = [](KvFormat format, int head_dim) {
    return RunFormat{.format = format, .head_dim = head_dim}.IsPossible();
  };
  EXPECT_TRUE(possible(KvFormat::kI16, 2));
  EXPECT_FALSE(possible(KvFormat::kI16, 3));
  EXPECT_TRUE(possible(KvFormat::kQ8, 4));
  EXPECT_FALSE(possible(KvFormat::kQ4, 4));
  EXPECT_TRUE(possible(KvFormat::kQ4, 8));
  EXPECT_FALSE(possible(KvFormat::kQ2, 24));
  EXPECT_TRUE(possible(KvFormat::kQ2, 80));
  EXPECT_FALSE(possible(KvFormat::kI16, 258));
}

TEST(PackRunDeathTest, RefusesAnImpossibleFormat) {
  AlignedBuffer memory;
  EXPECT_DEATH(PackRun({.format = KvFormat::kQ2, .head_dim = 24}, HeadSlots(24), memory),
               "24 dims in 2 bits");
}

TEST(LogWeight, IsLog2OfTheDegree) {
  EXPECT_EQ(LogWeight(1), 0.0f);
  for (int power = 1; power < 31; ++power) {
    EXPECT_EQ(LogWeight(int32_t{1} << power), static_cast<float>(power));
  }
  for (int32_t degree = 1; degree < 100000; degree += 7) {
    EXPECT_NEAR(LogWeight(degree), std::log2(static_cast<double>(degree)), 1e-6);
  }
  EXPECT_NEAR(LogWeight(INT32_MAX), 31.0f, 1e-6);
}

}  // namespace
}  // namespace vericache::kv
