// Attention over one chunk, merge and finish.
//
// Goal: the reference computes softmax attention, and every other path equals it in every bit.
// Method: the reference against binary64 under a derived bound; the paths against the reference by
// memcmp over shapes around every tile and vector width, with garbage in the padding.
#include "kernels/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/kv_layout.h"
#include "kernels/kv_pack.h"
#include "kernels/numerics.h"
#include "tests/support/attention_compare.h"
#include "tests/support/attention_data.h"

namespace vericache::kernels {
namespace {

using testing_support::ChunkData;
using testing_support::ChunkResult;
using testing_support::ChunkShape;
using testing_support::Data;
using testing_support::ExpectPathsEqualReference;
using testing_support::RunChunk;
using testing_support::Visible;

constexpr float kInf = std::numeric_limits<float>::infinity();

double Norm(const float* x, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return std::sqrt(sum);
}

double MaxAbs(const float* x, int n) {
  double max = 0;
  for (int i = 0; i < n; ++i) max = std::max(max, std::fabs(static_cast<double>(x[i])));
  return max;
}

struct Expected {
  std::vector<double> scores;  // log2 units
  std::vector<double> out;     // normalised
};

// Softmax attention of one row in binary64, on the floats that were encoded.
Expected SoftmaxAttention(const ChunkData& data, int row) {
  const int head_dim = data.shape().head_dim;
  const double scale = std::log2(std::exp(1.0)) / std::sqrt(static_cast<double>(head_dim));
  Expected expected;
  double max = -std::numeric_limits<double>::infinity();
  for (int x = 0; x < data.n_visible(row); ++x) {
    double dot = 0;
    for (int d = 0; d < head_dim; ++d) {
      dot += static_cast<double>(data.query(row)[d]) * static_cast<double>(data.key(x)[d]);
    }
    expected.scores.push_back(dot * scale + static_cast<double>(data.log_weight(x)));
    max = std::max(max, expected.scores.back());
  }
  expected.out.assign(static_cast<size_t>(head_dim), 0.0);
  double sum = 0;
  for (int x = 0; x < data.n_visible(row); ++x) {
    const double weight = std::exp2(expected.scores[static_cast<size_t>(x)] - max);
    sum += weight;
    for (int c = 0; c < head_dim; ++c) {
      expected.out[static_cast<size_t>(c)] += weight * static_cast<double>(data.value(x)[c]);
    }
  }
  for (double& y : expected.out) y /= sum;
  return expected;
}

// How far a score of the I16 definition may be from the exact one: half a step per code of q and k,
// by Cauchy-Schwarz, and a few roundings.
double ScoreBoundI16(const ChunkData& data, int row) {
  const int head_dim = data.shape().head_dim;
  const auto step = [&](const float* x) {
    return std::max(Norm(x, head_dim) / 46000, MaxAbs(x, head_dim) / 32767) * (1 + 1e-6);
  };
  const double q_norm = Norm(data.query(row), head_dim);
  double bound = 0;
  for (int x = 0; x < data.n_visible(row); ++x) {
    const double k_norm = Norm(data.key(x), head_dim);
    const double half_steps = q_norm * step(data.key(x)) + k_norm * step(data.query(row)) +
                              step(data.key(x)) * step(data.query(row));
    const double magnitude = q_norm * k_norm / std::sqrt(head_dim) + 6;
    bound = std::max(bound, 0.5 * 1.4427 * half_steps + 5 * 0x1p-23 * magnitude);
  }
  return bound;
}

// How far a normalised output may be: weights off by the score bound, the exponential and 64
// roundings of the sums; half a step per value; half a code of the 64 weights of each sub-block,
// where the X of all sub-blocks together are at most the sum of the weights.
double OutputBoundI16(const ChunkData& data, int row) {
  double value_max = 0;
  for (int x = 0; x < data.n_visible(row); ++x) {
    value_max = std::max(value_max, MaxAbs(data.value(x), data.shape().head_dim));
  }
  const double weights = std::exp2(2 * ScoreBoundI16(data, row)) - 1 + 64 * 0x1p-23;
  return value_max * (2 * weights + 0.5 / 8191 + 0.5 * 64 / 16375);
}

TEST(AttentionReference, I16EqualsBinary64SoftmaxWithinTheDerivedBound) {
  uint32_t seed = 1;
  for (const int head_dim : {16, 64, 80, 128, 256}) {
    for (const bool has_log_weights : {false, true}) {
      ChunkData data({.head_dim = head_dim,
                      .group = 2,
                      .n_rows = 4,
                      .run_slots = {256, 255},
                      .has_log_weights = has_log_weights,
                      .seed = ++seed});
      data.SetVisible([](int row) { return row == 0 ? 1 : 256 + 85 * row; });
      const ChunkResult result = RunChunk(RefKernels(), data, 0, 4);
      for (int row = 0; row < 4; ++row) {
        const Expected expected = SoftmaxAttention(data, row);
        const double score_bound = ScoreBoundI16(data, row);
        const double output_bound = OutputBoundI16(data, row);
        for (size_t x = 0; x < expected.scores.size(); ++x) {
          ASSERT_NEAR(static_cast<double>(result.scores[static_cast<size_t>(row) * 512 + x]),
                      expected.scores[x], score_bound)
              << head_dim << " row " << row << " slot " << x;
        }
        const float sum = result.sum[static_cast<size_t>(row)];
        for (int c = 0; c < head_dim; ++c) {
          const float out = result.out[static_cast<size_t>(row * head_dim + c)] / sum;
          ASSERT_NEAR(static_cast<double>(out), expected.out[static_cast<size_t>(c)], output_bound)
              << head_dim << " row " << row << " dim " << c;
        }
      }
    }
  }
}

// A packed format is exact softmax attention over the unpacked slots, but for the codes of the
// folded query (half a step per code of a key) and of the weights (half a code per slot).
struct PackedCase {
  KvFormat format;
  double query_codes;   // largest code of the folded query
  double weight_codes;  // largest code of P
};

struct PackedBounds {
  double score;
  double output;
};

PackedBounds BoundsOf(const PackedCase& packed, const ChunkData& data, int row) {
  const int head_dim = data.shape().head_dim;
  const double scale = std::log2(std::exp(1.0)) / std::sqrt(static_cast<double>(head_dim));
  const double center = CodeCenter(packed.format);
  double score_bound = 0;
  double value_max = 0;
  double scale_max = 0;
  int run_begin = 0;
  for (const SlotRun& run : data.slot_runs()) {
    for (int slot = 0; slot < run.n_slots && run_begin + slot < data.n_visible(row); ++slot) {
      double folded_max = 0;
      double magnitude = 6;  // of log weights
      for (int d = 0; d < head_dim; ++d) {
        const double q = std::fabs(static_cast<double>(data.query(row)[d])) * scale;
        const auto key_scale =
            static_cast<double>(run.key_scales[KeyScaleIndex(head_dim, slot, d)]);
        const auto mid = static_cast<double>(run.key_scales[KeyMidIndex(head_dim, slot, d)]);
        folded_max = std::max(folded_max, q * key_scale);
        magnitude += q * (center * key_scale + std::fabs(mid));
      }
      const double half_steps = 0.5 * folded_max / packed.query_codes * center * head_dim;
      score_bound = std::max(score_bound, half_steps + 40 * 0x1p-23 * magnitude);
      value_max = std::max(value_max, 1.2 * MaxAbs(data.value(run_begin + slot), head_dim));
      scale_max = std::max(scale_max, static_cast<double>(run.value_scales[ValueScaleIndex(slot)]));
    }
    run_begin += run.n_slots;
  }
  const double weights = std::exp2(2 * score_bound) - 1 + 64 * 0x1p-23;
  const double codes = 0.5 * 64 / packed.weight_codes * center * scale_max;
  return {score_bound, 2 * weights * value_max + codes};
}

TEST(AttentionReference, PackedFormatsEqualBinary64SoftmaxOfTheUnpackedSlots) {
  for (const PackedCase& packed :
       {PackedCase{KvFormat::kQ8, 32767, 32767}, PackedCase{KvFormat::kQ4, 127, 255},
        PackedCase{KvFormat::kQ2, 127, 255}}) {
    for (const int head_dim : {16, 64, 80}) {
      ChunkData data({.format = packed.format,
                      .head_dim = head_dim,
                      .group = 2,
                      .n_rows = 2,
                      .run_slots = {128, 100},
                      .has_log_weights = head_dim == 64,
                      .seed = 9});
      data.SetVisible([](int row) { return row == 0 ? 70 : 228; });
      const ChunkResult result = RunChunk(RefKernels(), data, 0, 2);
      data.ReplaceByUnpacked();
      for (int row = 0; row < 2; ++row) {
        const Expected expected = SoftmaxAttention(data, row);
        const PackedBounds bounds = BoundsOf(packed, data, row);
        for (size_t x = 0; x < expected.scores.size(); ++x) {
          ASSERT_NEAR(static_cast<double>(result.scores[static_cast<size_t>(row) * 512 + x]),
                      expected.scores[x], bounds.score);
        }
        const float sum = result.sum[static_cast<size_t>(row)];
        for (int c = 0; c < head_dim; ++c) {
          const float out = result.out[static_cast<size_t>(row * head_dim + c)] / sum;
          ASSERT_NEAR(static_cast<double>(out), expected.out[static_cast<size_t>(c)],
                      bounds.output);
        }
      }
    }
  }
}

TEST(AttentionReference, NothingVisibleGivesMinusInfinityAndZeros) {
  ChunkData data({.head_dim = 32, .group = 1, .n_rows = 2, .run_slots = {65}});
  data.SetVisible([](int row) { return row == 0 ? 0 : 65; });
  const ChunkResult result = RunChunk(RefKernels(), data, 0, 2);
  EXPECT_EQ(result.max[0], -kInf);
  EXPECT_EQ(result.sum[0], 0.0f);
  EXPECT_TRUE(
      std::all_of(result.out.begin(), result.out.begin() + 32, [](float x) { return x == 0.0f; }));
  EXPECT_GT(result.sum[1], 0.0f);
}

// Splitting a softmax and merging the parts is the softmax.
TEST(AttentionReference, MergedChunksEqualTheBinary64SoftmaxOfTheirUnion) {
  ChunkData first({.head_dim = 64, .group = 1, .run_slots = {512}, .seed = 11});
  ChunkData second({.head_dim = 64, .group = 1, .run_slots = {77}, .seed = 12});
  std::memcpy(second.mutable_query(0), first.query(0), 64 * sizeof(float));
  float max = -kInf;
  float sum = 0;
  float out[64] = {};
  double expected_sum = 0;
  double expected[64] = {};
  for (const ChunkData* data : {&first, &second}) {
    const ChunkResult result = RunChunk(RefKernels(), *data, 0, 1);
    RefKernels().merge(max, sum, out, result.max[0], result.sum[0], result.out.data(), 64);
    const Expected part = SoftmaxAttention(*data, 0);
    for (int x = 0; x < data->n_visible(0); ++x) {
      const double weight = std::exp2(part.scores[static_cast<size_t>(x)]);
      expected_sum += weight;
      for (int c = 0; c < 64; ++c) expected[c] += weight * static_cast<double>(data->value(x)[c]);
    }
  }
  const double bound = OutputBoundI16(first, 0);
  float result[64];
  RefKernels().finish(sum, out, 64, result);
  for (int c = 0; c < 64; ++c) {
    EXPECT_NEAR(static_cast<double>(result[c]), expected[c] / expected_sum, bound);
  }
  RefKernels().finish(0.0f, out, 64, result);
  EXPECT_EQ(result[5], 0.0f);
}

// ---- paths
// ---------------------------------------------------------------------------------------

class AttentionPaths : public ::testing::TestWithParam<KvFormat> {};

TEST_P(AttentionPaths, EqualTheReferenceInEveryBit) {
  uint32_t seed = 100;
  for (const int head_dim : {16, 32, 48, 64, 80, 96, 128, 256}) {
    for (const int n_slots : {1, 15, 16, 63, 64, 65, 255, 256, 257, 511, 512}) {
      ++seed;
      if (n_slots > 100 && seed % 3 != 0) continue;  // the slow test has them all
      ExpectPathsEqualReference({.format = GetParam(),
                                 .head_dim = head_dim,
                                 .group = 1 + static_cast<int>(seed % 7),
                                 .n_rows = 17,
                                 .run_slots = testing_support::RunsOf(n_slots, seed / 3),
                                 .has_log_weights = seed % 2 == 1,
                                 .seed = seed},
                                testing_support::kVisiblePatterns[seed % 4],
                                {1, 2, 3, 5, 6, 7, 16, 17});
    }
  }
}

TEST_P(AttentionPaths, EqualTheReferenceForManyRows) {
  ExpectPathsEqualReference({.format = GetParam(),
                             .head_dim = 32,
                             .group = 3,
                             .n_rows = 96,
                             .run_slots = {256, 64},
                             .seed = 5},
                            Visible::kStaircase, {41, 64, 96});
}

TEST_P(AttentionPaths, EqualTheReferenceAtTheEdgesOfTheArithmetic) {
  for (const Data kind : {Data::kParallel, Data::kTiny, Data::kZeros, Data::kHuge}) {
    for (const int head_dim : {16, 128, 256}) {
      ExpectPathsEqualReference({.format = GetParam(),
                                 .head_dim = head_dim,
                                 .group = 2,
                                 .n_rows = 4,
                                 .run_slots = {64, 65},
                                 .seed = 6},
                                Visible::kStaircase, {1, 4}, kind);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, AttentionPaths,
                         ::testing::Values(KvFormat::kI16, KvFormat::kQ8, KvFormat::kQ4,
                                           KvFormat::kQ2));

TEST(AttentionPaths, MergeAndFinishLikeTheReference) {
  std::mt19937 rng(8);
  std::normal_distribution<float> normal;
  const float maxima[] = {-kInf, -200.0f, -3.5f, 0.0f, 0.25f, 120.0f};
  for (const int head_dim : {16, 48, 256}) {
    const auto n = static_cast<size_t>(head_dim);
    for (const float max : maxima) {
      for (const float chunk_max : maxima) {
        std::vector<float> out(n);
        std::vector<float> chunk_out(n);
        for (size_t c = 0; c < n; ++c) {
          out[c] = normal(rng);
          chunk_out[c] = chunk_max == -kInf ? NAN : normal(rng);  // an empty chunk is not read
        }
        const float sum = max == -kInf ? 0.0f : 3.7f;
        std::vector<float> expected;
        for (const KernelTable* path : AvailableKernels()) {
          std::vector<float> result(2 * n + 2);
          std::copy(out.begin(), out.end(), result.begin());
          result[2 * n] = max;
          result[2 * n + 1] = sum;
          path->merge(result[2 * n], result[2 * n + 1], result.data(), chunk_max, 2.9f,
                      chunk_out.data(), head_dim);
          path->finish(result[2 * n + 1], result.data(), head_dim, result.data() + n);
          if (expected.empty()) expected = result;
          EXPECT_TRUE(testing_support::SameBits(expected.data(), result.data(), result.size()))
              << path->name << " " << max << " " << chunk_max;
        }
      }
    }
  }
}

// ---- integer bounds
// ------------------------------------------------------------------------------

// By Cauchy-Schwarz and the rounding of codes, |q . k| < 2^31; searched for where it is tightest.
TEST(AttentionBounds, DotsOfKeyCodesStayBelow31Bits) {
  std::mt19937 rng(3);
  std::normal_distribution<float> normal;
  int64_t worst = 0;
  for (int trial = 0; trial < 6000; ++trial) {
    const int head_dim = 16 << trial % 5;
    const int n_loud = trial % 7 == 0 ? head_dim : 1 + static_cast<int>(rng() % 16);
    std::vector<float> x(static_cast<size_t>(head_dim));
    for (int d = 0; d < head_dim; ++d) {
      const float loud = trial % 3 == 0   ? 1.0f
                         : trial % 3 == 1 ? normal(rng)
                                          : 0.5f + 0.001f * static_cast<float>(rng() % 1000);
      x[static_cast<size_t>(d)] = d < n_loud ? loud : trial % 2 == 0 ? 0.0f : 1e-3f * normal(rng);
    }
    std::vector<float> y = x;
    for (float& value : y) value *= trial % 4 == 0 ? -3.3f : 7.7f;
    std::vector<int16_t> a(x.size());
    std::vector<int16_t> b(x.size());
    bool is_finite = true;
    RefKernels().encode_key(x.data(), head_dim, a.data(), &is_finite);
    RefKernels().encode_key(y.data(), head_dim, b.data(), &is_finite);
    int64_t dot = 0;
    for (size_t d = 0; d < x.size(); ++d) dot += int64_t{a[d]} * b[d];
    worst = std::max(worst, std::abs(dot));
  }
  EXPECT_LT(worst, int64_t{1} << 31);
  EXPECT_GT(worst, (int64_t{1} << 31) / 100 * 98);  // the search reaches the edge
}

// The codes of a sub-block's weights, times the largest code of a value.
TEST(AttentionBounds, SumsOfWeightCodesStayBelow31Bits) {
  std::mt19937 rng(4);
  int64_t worst = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    float p[kSubBlockSlots];
    const float unit = std::exp2(-static_cast<float>(rng() % 60));
    for (float& weight : p) {
      const auto random = static_cast<float>(rng() % 1000) * 1e-3f;
      weight = unit * (trial % 3 == 0 ? 1.0f : trial % 3 == 1 ? random : 0.9999f + 1e-4f * random);
    }
    float range = 0.0f;
    for (int x = 0; x < kLanes; ++x) {
      range = std::max(range, (p[x] + p[x + 16]) + (p[x + 32] + p[x + 48]));
    }
    int64_t sum = 0;
    for (const float weight : p) sum += RoundCode(weight, kWeightCodeMax / range);
    worst = std::max(worst, sum);
  }
  EXPECT_LT(worst * 8191, int64_t{1} << 31);
  EXPECT_GE(worst, 16 * 16375);
}

}  // namespace
}  // namespace vericache::kernels
