// Everything that works on one row: quantisation, norm, rotation, gate, residual, codes.
//
// Goal: the reference computes what docs/numerics.md says, and every other path equals it in every
// bit at every length, alignment and awkward value.
// Method: the reference against binary64 under a derived bound, or against a literal computation
// written here; the paths against the reference by bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/activations.h"
#include "kernels/kernels.h"
#include "tests/support/gguf_rows.h"
#include "tests/support/matmul_run.h"
#include "tests/support/property.h"
#include "tests/support/same_bits.h"

namespace vericache::kernels {
namespace {

using testing_support::LiteralCodes;
using testing_support::Mistake;
using testing_support::QuantizeLiterally;
using testing_support::RandomActivations;
using testing_support::Rng;
using testing_support::SameBits;

constexpr double kHalfUlp = 0x1p-24;  // relative error of one rounding
constexpr int kLengths[] = {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 48, 50, 100, 576};

std::vector<float> Randoms(Rng& rng, int n) {
  std::vector<float> x(static_cast<size_t>(n));
  for (float& value : x) value = rng.Normal() * (rng.Chance(0.1) ? 8.0f : 1.0f);
  return x;
}

// x one float off any alignment, and nothing behind its end: sanitizers see a read beyond.
std::vector<float> Shifted(const std::vector<float>& x) {
  std::vector<float> shifted(x.size() + 1);
  std::copy(x.begin(), x.end(), shifted.begin() + 1);
  return shifted;
}

// ---- quantize -----------------------------------------------------------------------------------

struct Quantized {
  std::vector<int8_t> codes;
  std::vector<float> scales;
};

Quantized Quantize(const KernelTable& path, const float* x, int n_rows, int k) {
  Activations acts;
  ShapeActivations(acts, x, n_rows, k);
  const int n_blocks = ActBlockCount(k);
  path.quantize(acts, n_blocks / 3, n_blocks);
  path.quantize(acts, 0, n_blocks / 3);
  const size_t n = static_cast<size_t>(n_rows) * static_cast<size_t>(n_blocks);
  return {{acts.codes.As<int8_t>(), acts.codes.As<int8_t>() + n * kActBlock},
          {acts.scales.As<float>(), acts.scales.As<float>() + n * kScalePlanes}};
}

// Blocks of every kind the definition distinguishes.
std::vector<std::vector<float>> AwkwardBlocks() {
  const float inf = HUGE_VALF;
  std::vector<std::vector<float>> blocks(12, RandomActivations(1, kActBlock, 4));
  std::fill(blocks[0].begin(), blocks[0].end(), 0.0f);
  std::fill(blocks[1].begin(), blocks[1].end(), -0.0f);
  std::fill(blocks[2].begin(), blocks[2].end(), 1e-42f);
  std::fill(blocks[3].begin(), blocks[3].end(), -0x1p-100f);
  std::fill(blocks[4].begin(), blocks[4].end(), 0x1.fffffep-101f);
  blocks[5][31] = inf;
  blocks[6][0] = -inf;
  blocks[7][16] = std::nanf("");
  blocks[8][9] = 3.4e38f;
  for (int i = 0; i < kActBlock; ++i) {
    blocks[9][static_cast<size_t>(i)] = static_cast<float>(i) - 15.5f;  // exact ties where r = 1
    blocks[10][static_cast<size_t>(i)] = i == 3 ? -1e-30f : 1e-38f;
  }
  blocks[9][0] = 127.0f;
  return blocks;
}

void ExpectLiteral(const std::vector<float>& block) {
  const LiteralCodes expected = QuantizeLiterally(block.data());
  const Quantized actual = Quantize(RefKernels(), block.data(), 1, kActBlock);
  int sum[2] = {0, 0};
  for (int i = 0; i < kActBlock; ++i) {
    ASSERT_EQ(actual.codes[static_cast<size_t>(i)], expected.q[i]) << i;
    sum[i / 16] += expected.q[i];
  }
  EXPECT_TRUE(SameBits(actual.scales[kPlaneStep], expected.d));
  EXPECT_TRUE(SameBits(actual.scales[kPlaneSum], expected.s));
  const auto start = [&](int plane) {
    return std::bit_cast<int32_t>(actual.scales[static_cast<size_t>(plane)]);
  };
  EXPECT_EQ(start(kPlaneStart128), -128 * (sum[0] + sum[1]));
  EXPECT_EQ(start(kPlaneStart16), -16 * (sum[0] + sum[1]));
  EXPECT_EQ(start(kPlaneStart8), -8 * (sum[0] + sum[1]));
  EXPECT_EQ(start(kPlaneStart32Low), -32 * sum[0]);
  EXPECT_EQ(start(kPlaneStart32High), -32 * sum[1]);
}

TEST(Quantize, ReferenceIsTheDefinition) {
  for (const std::vector<float>& block : AwkwardBlocks()) ExpectLiteral(block);
  for (uint32_t seed = 0; seed < 100; ++seed) {
    ExpectLiteral(RandomActivations(1, kActBlock, seed));
  }
}

TEST(Quantize, EveryPathEqualsTheReference) {
  std::vector<float> row;
  for (const std::vector<float>& block : AwkwardBlocks()) {
    row.insert(row.end(), block.begin(), block.end());
  }
  const auto k_awkward = static_cast<int>(row.size());
  for (const int k : {1, 31, 32, 33, 64, 95, 320, k_awkward}) {
    std::vector<float> x = RandomActivations(41, k, 9);
    if (k == k_awkward) std::copy(row.begin(), row.end(), x.begin() + 2 * k);
    const std::vector<float> shifted = Shifted(x);
    for (const int n_rows : {1, 2, 5, 16, 17, 41}) {
      const Quantized expected = Quantize(RefKernels(), x.data(), n_rows, k);
      for (const KernelTable* path : AvailableKernels()) {
        const Quantized actual = Quantize(*path, shifted.data() + 1, n_rows, k);
        EXPECT_EQ(actual.codes, expected.codes) << path->name << " k " << k << " rows " << n_rows;
        EXPECT_TRUE(SameBits(actual.scales, expected.scales)) << path->name << " k " << k;
      }
    }
  }
}

// Values half way between two codes, where x / d, x * r and another rule for ties part.
TEST(Quantize, ComparisonNoticesEveryDeliberateMistake) {
  std::vector<std::vector<float>> blocks = AwkwardBlocks();
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::vector<float> block = RandomActivations(1, kActBlock, seed);
    const float d = std::fabs(block[0]) / 127.0f;
    for (int i = 1; i < kActBlock; ++i) {
      block[static_cast<size_t>(i)] = (static_cast<float>(i) + 0.5f) * d;
    }
    blocks.push_back(block);
  }
  for (const std::vector<float>& block : blocks) ExpectLiteral(block);
  for (const KernelTable* path : AvailableKernels()) {
    for (const Mistake mistake : {Mistake::kDividedCodes, Mistake::kRoundedHalfAway}) {
      int n_noticed = 0;
      for (const std::vector<float>& block : blocks) {
        const LiteralCodes wrong = QuantizeLiterally(block.data(), mistake);
        const Quantized actual = Quantize(*path, block.data(), 1, kActBlock);
        if (!std::equal(actual.codes.begin(), actual.codes.end(), wrong.q)) ++n_noticed;
      }
      EXPECT_GT(n_noticed, 0) << path->name << ' ' << static_cast<int>(mistake);
    }
  }
}

// ---- norm, rotation, gate, residual -------------------------------------------------------------

TEST(RmsNorm, ReferenceIsCloseToBinary64) {
  Rng rng(1);
  for (const int n : kLengths) {
    const std::vector<float> x = Randoms(rng, n);
    const std::vector<float> w = Randoms(rng, n);
    std::vector<float> y(x.size());
    RefKernels().rms_norm(x.data(), w.data(), n, 1e-5f, y.data());
    double sum = 0;
    for (const float value : x) sum += double{value} * double{value};
    const double inv = 1.0 / std::sqrt(sum / n + double{1e-5f});
    // A lane sums n / 16 terms, the tree 4; mean, eps, root, reciprocal and two products follow.
    const double bound = (n / 16.0 + 1 + 4 + 6) * kHalfUlp;
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = double{x[i]} * inv * double{w[i]};
      EXPECT_NEAR(y[i], expected, std::fabs(expected) * bound) << n;
    }
  }
}

TEST(RmsNorm, EveryPathEqualsTheReference) {
  Rng rng(2);
  for (const int n : kLengths) {
    std::vector<float> x = Randoms(rng, n);
    const std::vector<float> w = Randoms(rng, n);
    for (const float special : {1.0f, 0.0f, 1e-30f, 1e30f, HUGE_VALF, std::nanf("")}) {
      x.back() = special;
      std::vector<float> expected(x.size());
      RefKernels().rms_norm(x.data(), w.data(), n, 1e-6f, expected.data());
      for (const KernelTable* path : AvailableKernels()) {
        std::vector<float> y = Shifted(x);
        path->rms_norm(y.data() + 1, Shifted(w).data() + 1, n, 1e-6f, y.data() + 1);
        EXPECT_TRUE(SameBits(std::span(y).subspan(1), expected)) << path->name << " n " << n;
      }
    }
  }
}

// Summing in another order must show: a path that did so would pass no other test by luck.
TEST(RmsNorm, ComparisonNoticesAnotherSumOrder) {
  Rng rng(3);
  const std::vector<float> x = Randoms(rng, 576);
  const std::vector<float> ones(576, 1.0f);
  float sum = 0;
  for (const float value : x) sum = std::fma(value, value, sum);
  const float inv = 1.0f / std::sqrt(sum / 576.0f + 1e-5f);
  for (const KernelTable* path : AvailableKernels()) {
    std::vector<float> y(576);
    path->rms_norm(x.data(), ones.data(), 576, 1e-5f, y.data());
    std::vector<float> other(576);
    for (size_t i = 0; i < 576; ++i) other[i] = x[i] * inv;
    EXPECT_FALSE(SameBits(y, other)) << path->name;
  }
}

std::vector<float> Angles(Rng& rng, int n_pairs) {
  std::vector<float> cos_sin(static_cast<size_t>(2 * n_pairs));
  for (int i = 0; i < n_pairs; ++i) {
    const double angle = 100.0 * rng.Unit();
    cos_sin[static_cast<size_t>(i)] = static_cast<float>(std::cos(angle));
    cos_sin[static_cast<size_t>(n_pairs + i)] = static_cast<float>(std::sin(angle));
  }
  return cos_sin;
}

class Rope : public testing::TestWithParam<RopePairs> {};

TEST_P(Rope, ReferenceTurnsPairsAndLeavesTheRest) {
  Rng rng(4);
  for (const int n_pairs : {1, 3, 8, 16, 32}) {
    const std::vector<float> x = Randoms(rng, 2 * n_pairs + 6);
    const std::vector<float> cos_sin = Angles(rng, n_pairs);
    std::vector<float> y = x;
    RefKernels().rope(y.data(), cos_sin.data(), n_pairs, GetParam());
    for (int i = 0; i < n_pairs; ++i) {
      const bool is_adjacent = GetParam() == RopePairs::kAdjacent;
      const auto first = static_cast<size_t>(is_adjacent ? 2 * i : i);
      const auto second = static_cast<size_t>(is_adjacent ? 2 * i + 1 : i + n_pairs);
      const double c = cos_sin[static_cast<size_t>(i)];
      const double s = cos_sin[static_cast<size_t>(n_pairs + i)];
      const double x0 = x[first];
      const double x1 = x[second];
      const double bound = 2 * kHalfUlp * (std::fabs(x0) + std::fabs(x1));
      EXPECT_NEAR(y[first], x0 * c - x1 * s, bound);
      EXPECT_NEAR(y[second], x1 * c + x0 * s, bound);
    }
    EXPECT_TRUE(SameBits(std::span(y).last(6), std::span(x).last(6)));
  }
}

TEST_P(Rope, EveryPathEqualsTheReference) {
  Rng rng(5);
  for (const int n_pairs : {1, 3, 4, 7, 8, 9, 15, 16, 17, 24, 32, 40, 64, 128}) {
    const std::vector<float> x = Randoms(rng, 2 * n_pairs + 3);
    const std::vector<float> cos_sin = Angles(rng, n_pairs);
    std::vector<float> expected = x;
    RefKernels().rope(expected.data(), cos_sin.data(), n_pairs, GetParam());
    for (const KernelTable* path : AvailableKernels()) {
      std::vector<float> y = Shifted(x);
      path->rope(y.data() + 1, Shifted(cos_sin).data() + 1, n_pairs, GetParam());
      EXPECT_TRUE(SameBits(std::span(y).subspan(1), expected)) << path->name << ' ' << n_pairs;
    }
  }
}

TEST_P(Rope, ComparisonNoticesAnUnfusedStep) {
  Rng rng(6);
  const std::vector<float> x = Randoms(rng, 64);
  const std::vector<float> cos_sin = Angles(rng, 32);
  const bool is_adjacent = GetParam() == RopePairs::kAdjacent;
  std::vector<float> unfused = x;
  for (size_t i = 0; i < 32; ++i) {
    const size_t first = is_adjacent ? 2 * i : i;
    const size_t second = is_adjacent ? 2 * i + 1 : i + 32;
    unfused[first] = x[first] * cos_sin[i] - x[second] * cos_sin[32 + i];
    unfused[second] = x[second] * cos_sin[i] + x[first] * cos_sin[32 + i];
  }
  for (const KernelTable* path : AvailableKernels()) {
    std::vector<float> y = x;
    path->rope(y.data(), cos_sin.data(), 32, GetParam());
    EXPECT_FALSE(SameBits(y, unfused)) << path->name;
  }
}

INSTANTIATE_TEST_SUITE_P(BothPairings, Rope,
                         testing::Values(RopePairs::kAdjacent, RopePairs::kHalves),
                         [](const auto& pairs) {
                           return pairs.param == RopePairs::kAdjacent ? "Adjacent" : "Halves";
                         });

TEST(SiluMul, ReferenceIsCloseToBinary64) {
  for (int i = -4000; i <= 4000; ++i) {
    const float x = static_cast<float>(i) / 50.0f;
    const float up = 1.5f;
    float y = 0.0f;
    RefKernels().silu_mul(&x, &up, 1, &y);
    const double expected = double{x} / (1.0 + std::exp(-double{x})) * 1.5;
    // exp2_ of a rounded argument: 1.5e-7 + |x| log2(e) ln(2) half ulps, then 4 roundings. Below
    // 2^-100 exp2_ is 0.
    const double bound = 1.5e-7 + (std::fabs(double{x}) * 2 + 4) * kHalfUlp;
    EXPECT_NEAR(y, expected, std::fabs(expected) * bound + 0x1p-93) << x;
  }
}

TEST(SiluMul, EveryPathEqualsTheReference) {
  Rng rng(7);
  const float specials[] = {0.0f,   -0.0f,   HUGE_VALF, -HUGE_VALF, std::nanf(""),
                            1e-42f, 69.0f,   -69.3f,    -69.31472f, -69.4f,
                            88.0f,  -104.0f, 3e38f,     -3e38f};
  for (const int n : kLengths) {
    std::vector<float> gate = Randoms(rng, n);
    const std::vector<float> up = Randoms(rng, n);
    for (float& value : gate) {
      if (rng.Chance(0.5)) value = specials[rng.In(0, 13)];
    }
    std::vector<float> expected(gate.size());
    RefKernels().silu_mul(gate.data(), up.data(), n, expected.data());
    for (const KernelTable* path : AvailableKernels()) {
      std::vector<float> y(gate.size() + 1);
      path->silu_mul(Shifted(gate).data() + 1, Shifted(up).data() + 1, n, y.data() + 1);
      EXPECT_TRUE(SameBits(std::span(y).subspan(1), expected)) << path->name << " n " << n;
    }
  }
}

TEST(Add, EveryPathAddsValueByValue) {
  Rng rng(8);
  for (const int n : kLengths) {
    const std::vector<float> x = Randoms(rng, n);
    const std::vector<float> y = Randoms(rng, n);
    for (const KernelTable* path : AvailableKernels()) {
      std::vector<float> sum = Shifted(x);
      path->add(sum.data() + 1, Shifted(y).data() + 1, n);
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_TRUE(SameBits(sum[i + 1], x[i] + y[i])) << path->name;
      }
    }
  }
}

// ---- codes of K, q and V ------------------------------------------------------------------------

struct Encoded {
  std::vector<int16_t> codes;
  float step = 0.0f;
  bool is_finite = true;
};

using EncodeFn = float (*)(const float*, int, int16_t*, bool*);

Encoded Encode(EncodeFn encode, const float* x, int head_dim) {
  Encoded out;
  out.codes.assign(static_cast<size_t>(head_dim), int16_t{77});
  out.step = encode(x, head_dim, out.codes.data(), &out.is_finite);
  return out;
}

std::vector<float> HeadVectorOf(Rng& rng, int head_dim) {
  std::vector<float> x = Randoms(rng, head_dim);
  const float scale = std::ldexp(1.0f, rng.In(-110, 60));
  for (float& value : x) value *= scale;
  if (rng.Chance(0.2)) x[static_cast<size_t>(rng.In(0, head_dim - 1))] *= 3000.0f;
  if (rng.Chance(0.2)) {
    x[static_cast<size_t>(rng.In(0, head_dim - 1))] =
        rng.OneOf({HUGE_VALF, -HUGE_VALF, std::nanf(""), 3e38f, 0.0f});
  }
  return x;
}

PROPERTY(Encode, EveryPathEqualsTheReference, 300) {
  const int head_dim = rng.OneOf({2, 6, 16, 32, 64, 80, 96, 100, 112, 128, 254, 256});
  const std::vector<float> x = HeadVectorOf(rng, head_dim);
  const Encoded key = Encode(RefKernels().encode_key, x.data(), head_dim);
  const Encoded value = Encode(RefKernels().encode_value, x.data(), head_dim);
  for (const KernelTable* path : AvailableKernels()) {
    const std::vector<float> shifted = Shifted(x);
    const Encoded k = Encode(path->encode_key, shifted.data() + 1, head_dim);
    const Encoded v = Encode(path->encode_value, shifted.data() + 1, head_dim);
    EXPECT_EQ(k.codes, key.codes) << path->name;
    EXPECT_EQ(v.codes, value.codes) << path->name;
    EXPECT_TRUE(SameBits(k.step, key.step)) << path->name;
    EXPECT_TRUE(SameBits(v.step, value.step)) << path->name;
    EXPECT_EQ(k.is_finite, key.is_finite) << path->name;
    EXPECT_EQ(v.is_finite, value.is_finite) << path->name;
  }
}

// The bounds that keep every integer sum of attention below 2^31, and the rounding of each code.
PROPERTY(Encode, CodesAreNearestAndBounded, 300) {
  const int head_dim = rng.OneOf({16, 64, 100, 128, 256});
  std::vector<float> x = HeadVectorOf(rng, head_dim);
  for (float& value : x) {
    if (!std::isfinite(value) || std::fabs(value) > 1e18f) value = 1.0f;
  }
  const Encoded key = Encode(RefKernels().encode_key, x.data(), head_dim);
  const Encoded value = Encode(RefKernels().encode_value, x.data(), head_dim);
  EXPECT_TRUE(key.is_finite && value.is_finite);
  int64_t norm = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    norm += int64_t{key.codes[i]} * key.codes[i];
    EXPECT_LE(std::abs(int{value.codes[i]}), 8191);
    for (const auto& [code, step] :
         {std::pair{key.codes[i], key.step}, {value.codes[i], value.step}}) {
      if (step == 0.0f) {
        EXPECT_EQ(code, 0);
        EXPECT_LE(std::fabs(x[i]), 0x1p-90f * 46001.0f);
      } else {
        // 1 / step is rounded once, the fma once: half a step and 2^-23 of the value.
        const double error = static_cast<double>(code) * double{step} - double{x[i]};
        EXPECT_LE(std::fabs(error), 0.5 * double{step} + 2 * kHalfUlp * std::fabs(double{x[i]}));
      }
    }
  }
  // The squares of smaller vectors underflow; see kKeyNormInverse.
  if (key.step > 0x1p-75f) {
    EXPECT_LT(norm, int64_t{1} << 31);
  }
}

TEST(Encode, ReferenceIsTheDefinition) {
  Rng rng(9);
  for (int round = 0; round < 50; ++round) {
    const std::vector<float> x = Randoms(rng, 64);
    float lanes[16] = {};
    float amax = 0.0f;
    for (size_t i = 0; i < 64; ++i) {
      lanes[i % 16] = std::fma(x[i], x[i], lanes[i % 16]);
      amax = std::max(amax, std::fabs(x[i]));
    }
    for (size_t width = 8; width > 0; width /= 2) {
      for (size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
    }
    const float key_step =
        std::max(std::sqrt(lanes[0]) * (1.0f / 46000.0f), amax * (1.0f / 32767.0f));
    const float value_step = amax * (1.0f / 8191.0f);
    const Encoded key = Encode(RefKernels().encode_key, x.data(), 64);
    const Encoded value = Encode(RefKernels().encode_value, x.data(), 64);
    EXPECT_TRUE(SameBits(key.step, key_step));
    EXPECT_TRUE(SameBits(value.step, value_step));
    for (size_t i = 0; i < 64; ++i) {
      // The product x * (1 / step) is exact in binary64, so this is the fused rounding.
      EXPECT_EQ(key.codes[i], std::nearbyint(double{x[i]} * double{1.0f / key_step}));
      EXPECT_EQ(value.codes[i], std::nearbyint(double{x[i]} * double{1.0f / value_step}));
    }
  }
}

TEST(Encode, StoresZeroForNonFiniteValuesAndFlagsThem) {
  std::vector<float> x(64, 0.5f);
  for (const KernelTable* path : AvailableKernels()) {
    for (const EncodeFn encode : {path->encode_key, path->encode_value}) {
      const Encoded clean = Encode(encode, x.data(), 64);
      EXPECT_TRUE(clean.is_finite) << path->name;
      for (const float bad : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
        for (const size_t at : {size_t{0}, size_t{17}, size_t{63}}) {
          std::vector<float> poisoned = x;
          poisoned[at] = bad;
          std::vector<float> zeroed = x;
          zeroed[at] = 0.0f;
          const Encoded actual = Encode(encode, poisoned.data(), 64);
          const Encoded expected = Encode(encode, zeroed.data(), 64);
          EXPECT_FALSE(actual.is_finite) << path->name;
          EXPECT_EQ(actual.codes, expected.codes) << path->name;
          EXPECT_TRUE(SameBits(actual.step, expected.step)) << path->name;
        }
      }
    }
  }
}

TEST(Encode, FlagsAVectorWhoseNormOverflows) {
  const std::vector<float> x(64, 3e38f);
  for (const KernelTable* path : AvailableKernels()) {
    const Encoded key = Encode(path->encode_key, x.data(), 64);
    EXPECT_FALSE(key.is_finite) << path->name;
    EXPECT_EQ(key.step, 0.0f) << path->name;
    EXPECT_EQ(key.codes, std::vector<int16_t>(64, 0)) << path->name;
    EXPECT_TRUE(Encode(path->encode_value, x.data(), 64).is_finite) << path->name;
  }
}

}  // namespace
}  // namespace vericache::kernels
