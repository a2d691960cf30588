// Packing of the draft formats.
//
// Goal: codes are the nearest ones, extremes and constants are kept, every (slot, dim) has a place
// of its own, and padding is zero.
// Method: unpacked values against the floats under half a step; places counted bit by bit.
#include "kernels/kv_pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/kv_layout.h"

namespace vericache::kernels {
namespace {

constexpr KvFormat kPackedFormats[] = {KvFormat::kQ8, KvFormat::kQ4, KvFormat::kQ2};

struct Packed {
  std::vector<std::byte> keys, values;
  std::vector<float> key_scales, value_scales;
  SlotRun run;
};

Packed PackGroup(const SlotGroup& group, const std::vector<float>& x) {
  Packed packed;
  packed.keys.resize(KeyBytes(group.format, group.head_dim, 64), std::byte{0xff});
  packed.values.resize(ValueBytes(group.format, group.head_dim, 64), std::byte{0xff});
  packed.key_scales.resize(KeyScaleCount(group.format, group.head_dim, 64), NAN);
  packed.value_scales.resize(ValueScaleCount(group.format, 64), NAN);
  PackKeyGroup(group, x.data(), packed.keys.data(), packed.key_scales.data());
  PackValueGroup(group, x.data(), packed.values.data(), packed.value_scales.data());
  packed.run = {.keys = packed.keys.data(),
                .values = packed.values.data(),
                .key_scales = packed.key_scales.data(),
                .value_scales = packed.value_scales.data(),
                .log_weights = nullptr,
                .n_slots = group.n_valid};
  return packed;
}

int KeyCode(KvFormat format, int head_dim, const Packed& packed, int slot, int dim) {
  return CenteredCode(format, KeyPlace(format, head_dim, slot, dim), packed.keys.data());
}
int ValueCode(KvFormat format, int head_dim, const Packed& packed, int slot, int dim) {
  return CenteredCode(format, ValuePlace(format, head_dim, slot, dim), packed.values.data());
}

std::vector<float> RandomFloats(int count, uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(count));
  for (float& value : x) value = normal(rng) * 3.0f + 1.0f;
  return x;
}

TEST(KvPack, UnpacksWithinHalfAStep) {
  for (const KvFormat format : kPackedFormats) {
    for (const int head_dim : {16, 48, 64, 128, 256}) {
      for (const int n_valid : {1, 7, 63, 64}) {
        const SlotGroup group{format, head_dim, n_valid};
        const std::vector<float> x =
            RandomFloats(n_valid * head_dim, static_cast<uint32_t>(head_dim + n_valid));
        const Packed packed = PackGroup(group, x);
        std::vector<float> unpacked(static_cast<size_t>(head_dim));
        for (int slot = 0; slot < n_valid; ++slot) {
          UnpackKey(format, head_dim, packed.run, slot, unpacked.data());
          for (int d = 0; d < head_dim; ++d) {
            const float scale = packed.key_scales[KeyScaleIndex(head_dim, slot, d)];
            ASSERT_NEAR(unpacked[static_cast<size_t>(d)],
                        x[static_cast<size_t>(slot * head_dim + d)], 0.5001f * scale + 1e-5f);
          }
          UnpackValue(format, head_dim, packed.run, slot, unpacked.data());
          const float scale = packed.value_scales[ValueScaleIndex(slot)];
          for (int d = 0; d < head_dim; ++d) {
            ASSERT_NEAR(unpacked[static_cast<size_t>(d)],
                        x[static_cast<size_t>(slot * head_dim + d)], 0.5001f * scale + 1e-5f);
          }
        }
      }
    }
  }
}

TEST(KvPack, UsesTheWholeRangeOfCodes) {
  for (const KvFormat format : kPackedFormats) {
    const SlotGroup group{format, 16, 64};
    const Packed packed = PackGroup(group, RandomFloats(64 * 16, 3));
    const int center = CodeCenter(format);
    for (int d = 0; d < 16; ++d) {
      int min = 1000;
      int max = -1000;
      for (int slot = 0; slot < 64; ++slot) {
        const int code = KeyCode(format, 16, packed, slot, d);
        min = std::min(min, code);
        max = std::max(max, code);
      }
      EXPECT_EQ(min, -center);
      EXPECT_EQ(max, center - 1);
    }
  }
}

TEST(KvPack, KeepsConstantChannelsAndSlotsExactly) {
  for (const KvFormat format : kPackedFormats) {
    std::vector<float> x = RandomFloats(64 * 32, 4);
    for (int slot = 0; slot < 64; ++slot) x[static_cast<size_t>(slot * 32 + 5)] = -0.37f;
    for (int d = 0; d < 32; ++d) x[static_cast<size_t>(9 * 32 + d)] = 12.75f;
    const Packed packed = PackGroup({format, 32, 64}, x);
    float unpacked[32];
    UnpackValue(format, 32, packed.run, 9, unpacked);
    for (const float value : unpacked) EXPECT_EQ(value, 12.75f);
    for (int slot = 0; slot < 64; ++slot) x[static_cast<size_t>(slot * 32 + 5)] = -0.37f;
    const Packed again = PackGroup({format, 32, 64}, x);
    UnpackKey(format, 32, again.run, 63, unpacked);
    EXPECT_EQ(unpacked[5], -0.37f);
  }
}

// Ranges so small that the scale is denormal, or too small for a scale at all, stay in the codes.
TEST(KvPack, ClampsCodesOfTinyRanges) {
  for (const KvFormat format : kPackedFormats) {
    std::vector<float> x(64 * 16, 0.0f);
    for (int slot = 0; slot < 64; ++slot) {
      for (int d = 0; d < 16; ++d) {
        x[static_cast<size_t>(slot * 16 + d)] = static_cast<float>((slot + d) % 5) * 1.4e-45f;
      }
    }
    const Packed packed = PackGroup({format, 16, 64}, x);
    float unpacked[16];
    UnpackKey(format, 16, packed.run, 7, unpacked);
    for (const float value : unpacked) EXPECT_LT(std::fabs(value), 1e-40f);
  }
}

TEST(KvPack, RoundsHalfwayToEven) {
  // Q2: min 0, max 3, scale 1: codes of 0.5, 1.5, 2.5 are 0, 2, 2.
  std::vector<float> x(64 * 16, 0.0f);
  x[1 * 16] = 3.0f;
  x[2 * 16] = 0.5f;
  x[3 * 16] = 1.5f;
  x[4 * 16] = 2.5f;
  const Packed packed = PackGroup({KvFormat::kQ2, 16, 64}, x);
  const int expected[] = {0, 3, 0, 2, 2};
  for (int slot = 0; slot < 5; ++slot) {
    EXPECT_EQ(KeyCode(KvFormat::kQ2, 16, packed, slot, 0), expected[slot] - 2);
  }
}

TEST(KvPack, GivesEveryCodeItsOwnBits) {
  for (const KvFormat format : {KvFormat::kI16, KvFormat::kQ8, KvFormat::kQ4, KvFormat::kQ2}) {
    const int bits = CodeBits(format);
    for (const int head_dim : {16, 48, 64}) {
      const size_t n_bytes = KeyBytes(format, head_dim, 128);
      std::vector<int> key_bits(n_bytes * 8, 0);
      std::vector<int> value_bits(n_bytes * 8, 0);
      for (int slot = 0; slot < 128; ++slot) {
        for (int d = 0; d < head_dim; ++d) {
          const CodePlace key = KeyPlace(format, head_dim, slot, d);
          const CodePlace value = ValuePlace(format, head_dim, slot, d);
          for (int bit = 0; bit < bits; ++bit) {
            ++key_bits.at(key.byte * 8 + static_cast<size_t>(key.shift + bit));
            ++value_bits.at(value.byte * 8 + static_cast<size_t>(value.shift + bit));
          }
        }
      }
      EXPECT_TRUE(std::all_of(key_bits.begin(), key_bits.end(), [](int n) { return n == 1; }));
      EXPECT_TRUE(std::all_of(value_bits.begin(), value_bits.end(), [](int n) { return n == 1; }));
    }
  }
}

TEST(KvPack, LeavesZerosWhereNoSlotIs) {
  for (const KvFormat format : kPackedFormats) {
    const Packed packed = PackGroup({format, 32, 10}, RandomFloats(10 * 32, 6));
    for (int slot = 10; slot < 64; ++slot) {
      EXPECT_EQ(packed.value_scales[ValueScaleIndex(slot)], 0.0f);
      EXPECT_EQ(packed.value_scales[ValueMidIndex(slot)], 0.0f);
      for (int d = 0; d < 32; ++d) {
        const int zero_bits = format == KvFormat::kQ8 ? 0 : -CodeCenter(format);
        EXPECT_EQ(KeyCode(format, 32, packed, slot, d), zero_bits);
        EXPECT_EQ(ValueCode(format, 32, packed, slot, d), zero_bits);
      }
    }
  }
}

}  // namespace
}  // namespace vericache::kernels
