// The wide sweep of the matmul: more shapes, all row counts, the sizes of real models.
//
// Goal and method as in matmul_test.cc.
#include <gtest/gtest.h>

#include "kernels/kernels.h"
#include "tests/support/gguf_rows.h"
#include "tests/support/matmul_run.h"
#include "tests/support/property.h"
#include "tests/support/same_bits.h"

namespace vericache::kernels {
namespace {

using testing_support::GgufRows;
using testing_support::kAllWeightTypes;
using testing_support::MatmulCall;
using testing_support::Multiply;
using testing_support::MultiplyLiterally;
using testing_support::Name;
using testing_support::Pack;
using testing_support::RandomActivations;
using testing_support::Rng;
using testing_support::SameBits;

class MatmulSweep : public testing::TestWithParam<WeightType> {};

TEST_P(MatmulSweep, EveryRowCountEqualsTheReference) {
  const int k = GetParam() <= WeightType::kBf16 ? 67 : 512;
  const PackedMatrix w = Pack(GgufRows(GetParam(), 83, k, 1));
  const std::vector<float> x = RandomActivations(70, k, 2);
  const std::vector<float> expected = Multiply(RefKernels(), w, {.x = x.data(), .n_rows = 70});
  for (const KernelTable* path : AvailableKernels()) {
    if (path->isa == Isa::kRef) continue;  // all 70 rows of it are what is expected
    for (int n_rows = 1; n_rows <= 70; ++n_rows) {
      const std::span<const float> first(expected.data(), static_cast<size_t>(n_rows) * 83);
      ASSERT_TRUE(SameBits(Multiply(*path, w, {.x = x.data(), .n_rows = n_rows}), first))
          << path->name << ' ' << n_rows;
    }
  }
}

TEST_P(MatmulSweep, RandomShapesEqualTheLiteral) {
  testing_support::RunProperty(40, [](Rng& rng) {
    const int block = BlockLength(GetParam());
    const int k = block * rng.In(1, block == 256 ? 5 : block == 32 ? 20 : 300);
    const int n = rng.In(1, 90);
    const int n_rows = rng.In(1, 40);
    const auto seed = static_cast<uint32_t>(rng.Next() >> 40);
    const GgufRows rows(GetParam(), n, k, seed);
    const PackedMatrix w = Pack(rows);
    std::vector<float> x = RandomActivations(n_rows, k, seed + 1);
    for (float& value : x) {
      if (rng.Chance(0.002)) value = rng.OneOf({0.0f, 1e-38f, 1e30f, HUGE_VALF, std::nanf("")});
    }
    const std::vector<float> expected = MultiplyLiterally(rows, x, n_rows);
    const int cut = rng.In(0, w.n_panels);
    for (const KernelTable* path : AvailableKernels()) {
      const MatmulCall call = {.x = x.data(), .n_rows = n_rows, .panel_cuts = {cut}};
      ASSERT_TRUE(SameBits(Multiply(*path, w, call), expected))
          << path->name << " n " << n << " k " << k << " rows " << n_rows;
    }
  });
}

// The largest sums that integers and int16 pairs must hold: every code and weight at its end.
TEST_P(MatmulSweep, ExtremeCodesDoNotOverflow) {
  if (!IsQuantized(GetParam())) return;
  const int k = 1024;
  for (const int fill : {0x00, 0x0f, 0x80, 0x7f, 0xff}) {
    GgufRows rows(GetParam(), 16, k, 3);
    rows.FillCodes(static_cast<std::byte>(fill));
    const PackedMatrix w = Pack(rows);
    for (const float sign : {1.0f, -1.0f}) {
      const std::vector<float> x(static_cast<size_t>(k), sign);  // every code is 127 or -127
      const std::vector<float> expected = MultiplyLiterally(rows, x, 1);
      for (const KernelTable* path : AvailableKernels()) {
        EXPECT_TRUE(SameBits(Multiply(*path, w, {.x = x.data()}), expected))
            << path->name << " fill " << fill;
      }
    }
  }
}

// Inputs and outputs of real layers, long enough that tiles leave the caches.
TEST_P(MatmulSweep, LongInputsEqualTheReference) {
  const int k = 8960;
  const PackedMatrix w = Pack(GgufRows(GetParam(), 48, k, 4));
  const std::vector<float> x = RandomActivations(64, k, 5);
  const MatmulCall call = {.x = x.data(), .n_rows = 64};
  const std::vector<float> expected = Multiply(RefKernels(), w, call);
  for (const KernelTable* path : AvailableKernels()) {
    EXPECT_TRUE(SameBits(Multiply(*path, w, call), expected)) << path->name;
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypes, MatmulSweep, testing::ValuesIn(kAllWeightTypes),
                         [](const auto& type) { return Name(type.param); });

}  // namespace
}  // namespace vericache::kernels
