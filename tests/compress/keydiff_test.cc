// Goal: KeyDiff keeps the sinks and the keys least like the mean direction.
// Method: cosines in binary64 over random sources; one key that differs; degenerate keys.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/ranking.h"

namespace vericache::compress {
namespace {

using testing_support::Compress;
using testing_support::RandomJob;

std::vector<double> MinusCosines(const kv::HeadSlots& slots) {
  const auto dims = static_cast<size_t>(slots.head_dim);
  std::vector<std::vector<double>> units;
  std::vector<double> mean(dims, 0.0);
  std::vector<float> key(dims);
  for (int slot = 0; slot < slots.Count(); ++slot) {
    slots.Key(slot, key.data());
    double square = 0.0;
    for (const float x : key) square += double{x} * x;
    std::vector<double>& unit = units.emplace_back(key.begin(), key.end());
    for (size_t dim = 0; dim < dims; ++dim) mean[dim] += unit[dim] /= std::sqrt(square);
  }
  double square = 0.0;
  for (const double x : mean) square += x * x;
  std::vector<double> scores;
  for (const std::vector<double>& unit : units) {
    double dot = 0.0;
    for (size_t dim = 0; dim < dims; ++dim) dot += unit[dim] * mean[dim];
    scores.push_back(-dot / std::sqrt(square));
  }
  return scores;
}

PROPERTY(KeyDiff, KeepsTheKeysLeastLikeTheMean, 10) {
  const testing_support::JobOptions options = testing_support::UntiedJob(rng);
  const RandomJob job(rng, options);
  const int n = options.kv.n_tokens;
  const double keep = rng.OneOf({0.1, 0.5});
  const kv::PackedKv packed = Compress(fmt::format("keydiff:keep={},sinks=2", keep), job.All());
  for (int head = 0; head < options.kv.shape.n_kv_heads; ++head) {
    testing_support::ExpectBestKept(
        packed.Head(0, head),
        {.scores = MinusCosines(testing_support::SlotsOf(job.Full(), 0, head, n)),
         .n_kept = std::max(2, static_cast<int>(keep * n)),
         .n_sinks = 2,
         .tolerance = 1e-4});
  }
}

TEST(KeyDiff, KeepsTheFirstOfEqualKeys) {
  testing_support::Rng rng(2);
  for (const auto content :
       {testing_support::KvContent::kConstant, testing_support::KvContent::kZero}) {
    const RandomJob job(rng, {.kv = {.n_tokens = 10, .content = content}});
    const kv::PackedKv packed = Compress("keydiff:keep=0.3", job.All());
    EXPECT_TRUE(testing_support::HoldsSlots(packed, job.Full(), {0, 0}, {0, 1, 2, 3}));
  }
}

TEST(KeyDiff, NeedsNothingAndIsSafeToShare) {
  const Traits traits = testing_support::Make("keydiff")->GetTraits();
  EXPECT_EQ(traits.needs, Needs::kNothing);
  EXPECT_TRUE(traits.is_query_agnostic);
}

}  // namespace
}  // namespace vericache::compress
