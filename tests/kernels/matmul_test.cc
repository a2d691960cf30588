// The matmul of every weight type.
//
// Goal: the reference is the definition, and every other path equals it in every bit, whatever the
// shape, the number of rows and the way the panels are shared out.
// Method: the reference against a literal computation from GGUF bytes; the paths against the
// reference by bits over shapes around every tile and vector width; deliberate mistakes in the
// literal show that the comparison would notice one.
#include <gtest/gtest.h>

#include "kernels/kernels.h"
#include "tests/support/gguf_rows.h"
#include "tests/support/matmul_run.h"
#include "tests/support/same_bits.h"

namespace vericache::kernels {
namespace {

using testing_support::GgufRows;
using testing_support::kAllWeightTypes;
using testing_support::kUntouched;
using testing_support::MatmulCall;
using testing_support::Mistake;
using testing_support::Multiply;
using testing_support::MultiplyLiterally;
using testing_support::Name;
using testing_support::Pack;
using testing_support::RandomActivations;
using testing_support::SameBits;

// Input lengths around a type's block.
std::vector<int> InputLengths(WeightType type) {
  const int block = BlockLength(type);
  if (block == 1) return {1, 2, 31, 33, 257};
  if (block == 32) return {32, 64, 288};
  return {256, 512};
}

// Rows of every awkward kind among ordinary ones: zeros, tiny, subnormal, huge, not finite.
std::vector<float> AwkwardActivations(int n_rows, int k) {
  std::vector<float> x = RandomActivations(n_rows, k, 11);
  const float values[] = {0.0f, 0x1p-101f, 1e-42f, 3e38f, HUGE_VALF, std::nanf("")};
  for (int kind = 0; kind < 6 && 2 * kind + 1 < n_rows; ++kind) {
    float* row = &x[static_cast<size_t>(2 * kind + 1) * static_cast<size_t>(k)];
    if (kind <= 2) {
      for (int i = 0; i < k && i < 32; ++i) row[i] = i % 2 == 0 ? values[kind] : -values[kind];
    } else {
      row[k / 2] = values[kind];
    }
  }
  return x;
}

class Matmul : public testing::TestWithParam<WeightType> {};

TEST_P(Matmul, ReferenceIsTheDefinitionFromGgufBytes) {
  for (const int k : InputLengths(GetParam())) {
    const GgufRows rows(GetParam(), 21, k, 3);
    const PackedMatrix w = Pack(rows);
    const std::vector<float> x = AwkwardActivations(14, k);
    const std::vector<float> expected = MultiplyLiterally(rows, x, 14);
    EXPECT_TRUE(SameBits(Multiply(RefKernels(), w, {.x = x.data(), .n_rows = 14}), expected)) << k;
  }
}

TEST_P(Matmul, EveryPathEqualsTheReference) {
  for (const int k : InputLengths(GetParam())) {
    for (const int n : {1, 15, 16, 17, 33}) {
      const PackedMatrix w = Pack(GgufRows(GetParam(), n, k, 5));
      const std::vector<float> x = AwkwardActivations(41, k);
      for (const int n_rows : {1, 2, 5, 16, 17, 41}) {
        const MatmulCall call = {.x = x.data(), .n_rows = n_rows};
        const std::vector<float> expected = Multiply(RefKernels(), w, call);
        for (const KernelTable* path : AvailableKernels()) {
          EXPECT_TRUE(SameBits(Multiply(*path, w, call), expected))
              << path->name << " n " << n << " k " << k << " rows " << n_rows;
        }
      }
    }
  }
}

TEST_P(Matmul, RowsDoNotDependOnTheirNumber) {
  const int k = InputLengths(GetParam()).back();
  const PackedMatrix w = Pack(GgufRows(GetParam(), 40, k, 6));
  const std::vector<float> x = RandomActivations(64, k, 7);
  for (const KernelTable* path : AvailableKernels()) {
    const std::vector<float> together = Multiply(*path, w, {.x = x.data(), .n_rows = 64});
    for (int row = 0; row < 64; ++row) {
      const auto at = static_cast<size_t>(row);
      const MatmulCall call = {.x = &x[at * static_cast<size_t>(k)], .n_rows = 1};
      const std::span<const float> expected(&together[at * 40], 40);
      ASSERT_TRUE(SameBits(Multiply(*path, w, call), expected)) << path->name << " row " << row;
    }
  }
}

TEST_P(Matmul, PanelsMayBeSharedOutAndResultsStrided) {
  const int k = InputLengths(GetParam()).front();
  const PackedMatrix w = Pack(GgufRows(GetParam(), 135, k, 8));
  const std::vector<float> x = RandomActivations(19, k, 9);
  const std::vector<float> expected = Multiply(RefKernels(), w, {.x = x.data(), .n_rows = 19});
  for (const KernelTable* path : AvailableKernels()) {
    for (const std::vector<int>& cuts : {std::vector<int>{}, {4}, {1, 2, 8}, {3, 8}}) {
      const std::vector<float> y = Multiply(
          *path, w,
          {.x = x.data(), .n_rows = 19, .y_stride = 151, .panel_cuts = cuts, .y_offset = 3});
      for (size_t i = 0; i < y.size(); ++i) {
        const size_t column = i % 151;
        const float want = column < 135 ? expected[i / 151 * 135 + column] : kUntouched;
        ASSERT_TRUE(SameBits(y[i], want))
            << path->name << " row " << i / 151 << " column " << column;
      }
    }
  }
}

TEST_P(Matmul, MisalignedInputsChangeNothing) {
  const int k = InputLengths(GetParam()).back();
  const PackedMatrix w = Pack(GgufRows(GetParam(), 33, k, 10));
  const std::vector<float> x = RandomActivations(18, k, 11);
  std::vector<float> shifted(x.size() + 1);
  std::copy(x.begin(), x.end(), shifted.begin() + 1);
  for (const KernelTable* path : AvailableKernels()) {
    EXPECT_TRUE(SameBits(Multiply(*path, w, {.x = shifted.data() + 1, .n_rows = 18}),
                         Multiply(RefKernels(), w, {.x = x.data(), .n_rows = 18})))
        << path->name;
  }
}

TEST_P(Matmul, APoisonedRowIsNanAndAlone) {
  const int k = InputLengths(GetParam()).back();
  const PackedMatrix w = Pack(GgufRows(GetParam(), 20, k, 12));
  std::vector<float> x = RandomActivations(17, k, 13);
  for (const KernelTable* path : AvailableKernels()) {
    const std::vector<float> clean = Multiply(*path, w, {.x = x.data(), .n_rows = 17});
    for (const float poison : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
      std::vector<float> poisoned = x;
      poisoned[static_cast<size_t>(5 * k + k - 1)] = poison;
      const std::vector<float> y = Multiply(*path, w, {.x = poisoned.data(), .n_rows = 17});
      for (size_t i = 0; i < y.size(); ++i) {
        if (i / 20 == 5) {
          EXPECT_FALSE(std::isfinite(y[i]) && IsQuantized(GetParam())) << path->name;
        } else {
          EXPECT_TRUE(SameBits(y[i], clean[i])) << path->name;
        }
      }
    }
  }
}

// Each mistake must show on the inputs the other tests use, or they would not notice it either.
TEST_P(Matmul, ComparisonNoticesEveryDeliberateMistake) {
  std::vector<Mistake> mistakes = {Mistake::kUnfusedStep};
  if (!IsQuantized(GetParam())) {
    mistakes.push_back(Mistake::kReversedInputs);
  } else {
    mistakes.push_back(Mistake::kOtherAssociation);
  }
  if (GetParam() == WeightType::kQ6K) mistakes.push_back(Mistake::kMergedHalves);
  const bool has_min = GetParam() == WeightType::kQ4_1 || GetParam() == WeightType::kQ5_1 ||
                       GetParam() == WeightType::kQ4K || GetParam() == WeightType::kQ5K;
  if (has_min) mistakes.push_back(Mistake::kMinFirst);

  const int k = InputLengths(GetParam()).back();
  const GgufRows rows(GetParam(), 33, k, 14);
  const PackedMatrix w = Pack(rows);
  const std::vector<float> x = RandomActivations(5, k, 15);
  for (const KernelTable* path : AvailableKernels()) {
    const std::vector<float> y = Multiply(*path, w, {.x = x.data(), .n_rows = 5});
    EXPECT_TRUE(SameBits(y, MultiplyLiterally(rows, x, 5))) << path->name;
    for (const Mistake mistake : mistakes) {
      EXPECT_FALSE(SameBits(y, MultiplyLiterally(rows, x, 5, mistake)))
          << path->name << " mistake " << static_cast<int>(mistake);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypes, Matmul, testing::ValuesIn(kAllWeightTypes),
                         [](const auto& type) { return Name(type.param); });

}  // namespace
}  // namespace vericache::kernels
