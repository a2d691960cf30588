// Packing GGUF rows into panels.
//
// Goal: no weight is lost, moved or changed; a packed matrix costs at most 3 % more than GGUF.
// Method: blocks and rows read back against a literal reading of the GGUF bytes; dequantised values
// against binary64 under a derived bound.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/kernels.h"
#include "kernels/packed_layout.h"
#include "tests/support/gguf_rows.h"
#include "tests/support/matmul_run.h"
#include "tests/support/same_bits.h"

namespace vericache::kernels {
namespace {

using testing_support::GgufRows;
using testing_support::kAllWeightTypes;
using testing_support::LiteralBlock;
using testing_support::Name;
using testing_support::Pack;
using testing_support::SameBits;
using testing_support::SizeOf;

class Packing : public testing::TestWithParam<WeightType> {};

TEST_P(Packing, KnowsTheSizesOfGguf) {
  EXPECT_EQ(BlockLength(GetParam()), SizeOf(GetParam()).weights);
  EXPECT_EQ(GgufRowBytes(GetParam(), 512),
            static_cast<size_t>(512 / SizeOf(GetParam()).weights * SizeOf(GetParam()).bytes));
  EXPECT_EQ(IsQuantized(GetParam()), SizeOf(GetParam()).weights > 1);
}

TEST_P(Packing, KeepsEveryBlock) {
  const GgufRows rows(GetParam(), 37, 768, 1);
  if (rows.IsFloat()) return;
  const PackedMatrix w = Pack(rows);
  for (int n = 0; n < rows.n(); ++n) {
    for (int b = 0; b < rows.k() / kActBlock; ++b) {
      const LiteralBlock expected = rows.Block(n, b);
      const WeightBlock actual = UnpackBlock(w, n, b);
      for (int i = 0; i < kActBlock; ++i) ASSERT_EQ(actual.weights[i], expected.weights[i]) << i;
      ASSERT_TRUE(SameBits(actual.scale[0], expected.scale[0]));
      ASSERT_TRUE(SameBits(actual.scale[1], expected.scale[1]));
      ASSERT_TRUE(SameBits(actual.min, expected.min));
    }
  }
}

// A weight is code * scale + min. Code and scale have 8 + 8 + 11 bits at most, so the product
// rounds once, and the sum once.
TEST_P(Packing, DequantizesWithinTwoRoundings) {
  const GgufRows rows(GetParam(), 18, 512, 2);
  const PackedMatrix w = Pack(rows);
  std::vector<float> actual(512);
  for (int n = 0; n < rows.n(); ++n) {
    DequantizeRow(w, n, actual.data());
    for (int k = 0; k < rows.k(); ++k) {
      const float value = actual[static_cast<size_t>(k)];
      if (rows.IsFloat()) {
        ASSERT_TRUE(SameBits(value, rows.FloatWeight(n, k)));
        continue;
      }
      const LiteralBlock block = rows.Block(n, k / kActBlock);
      const double product = double(block.weights[k % 32]) * double{block.scale[k % 32 / 16]};
      const double expected = product + double{block.min};
      const double bound = 0x1p-24 * (std::fabs(product) + std::fabs(expected));
      ASSERT_NEAR(value, expected, bound) << n << ' ' << k;
    }
  }
}

TEST_P(Packing, PanelsMayBePackedInAnyOrder) {
  const GgufRows rows(GetParam(), 70, 256, 3);
  const PackedMatrix whole = Pack(rows);
  PackedMatrix parts = ShapePackedMatrix(GetParam(), 70, 256);
  const auto from = [&](int panel) {
    const auto first_row = static_cast<size_t>(panel * kPanelColumns);
    return rows.data() + first_row * GgufRowBytes(GetParam(), 256);
  };
  PackPanels(parts, from(3), 3, 5);
  PackPanels(parts, from(0), 0, 1);
  PackPanels(parts, from(1), 1, 3);
  ASSERT_EQ(parts.data.size(), whole.data.size());
  EXPECT_EQ(std::memcmp(parts.data.data(), whole.data.data(), whole.data.size()), 0);
}

TEST_P(Packing, CostsAtMostThreePercent) {
  const PackedMatrix w = ShapePackedMatrix(GetParam(), 64, 1536);
  const double packed = static_cast<double>(w.panel_bytes) * w.n_panels;
  EXPECT_LE(packed, 1.03 * 64.0 * static_cast<double>(GgufRowBytes(GetParam(), 1536)));
}

TEST_P(Packing, RefusesPartOfABlock) {
  if (BlockLength(GetParam()) == 1) return;
  EXPECT_DEATH(ShapePackedMatrix(GetParam(), 16, BlockLength(GetParam()) + 16), "block of");
}

INSTANTIATE_TEST_SUITE_P(AllTypes, Packing, testing::ValuesIn(kAllWeightTypes),
                         [](const auto& type) { return Name(type.param); });

}  // namespace
}  // namespace vericache::kernels
