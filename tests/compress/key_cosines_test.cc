// Goal: cosines of keys are those of their definition, and the nearest is the first of the best.
// Method: random slots against binary64 on decoded keys; zero keys; lists of every length.

#include "compress/key_cosines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/compress_jobs.h"

namespace vericache::compress {
namespace {

using testing_support::JobOptions;
using testing_support::RandomJob;

double Cosine(const kv::HeadSlots& slots, int a, int b) {
  std::vector<float> x(static_cast<size_t>(slots.head_dim));
  std::vector<float> y(x.size());
  slots.Key(a, x.data());
  slots.Key(b, y.data());
  double dot = 0, xx = 0, yy = 0;
  for (size_t dim = 0; dim < x.size(); ++dim) {
    dot += double{x[dim]} * y[dim];
    xx += double{x[dim]} * x[dim];
    yy += double{y[dim]} * y[dim];
  }
  return xx > 0 && yy > 0 ? dot / std::sqrt(xx * yy) : 0.0;
}

PROPERTY(KeyCosines, AreThoseOfTheDecodedKeys, 20) {
  JobOptions options;
  options.kv.n_tokens = rng.In(4, 100);
  const RandomJob random(rng, options);
  const kv::HeadSlots slots = testing_support::SlotsOf(random.Full(), 0, 0, options.kv.n_tokens);
  const KeyCosines cosines(slots);
  for (int trial = 0; trial < 20; ++trial) {
    const int a = rng.In(0, slots.Count() - 1);
    int b[KeyCosines::kAtOnce];
    double got[KeyCosines::kAtOnce];
    for (int& slot : b) slot = rng.In(0, slots.Count() - 1);
    cosines.Of(a, b, got);
    for (int i = 0; i < KeyCosines::kAtOnce; ++i) {
      ASSERT_NEAR(got[i], Cosine(slots, a, b[i]), 1e-6);
    }
  }
}

PROPERTY(KeyCosines, FindTheFirstOfTheNearest, 20) {
  JobOptions options;
  options.kv.n_tokens = 30;
  options.kv.content =
      rng.OneOf({testing_support::KvContent::kNormal, testing_support::KvContent::kTies});
  const RandomJob random(rng, options);
  const kv::HeadSlots slots = testing_support::SlotsOf(random.Full(), 0, 0, options.kv.n_tokens);
  const KeyCosines cosines(slots);
  EXPECT_EQ(cosines.NearestOf(0, {}).index, -1);
  for (int n = 1; n <= 10; ++n) {
    const int a = rng.In(0, 29);
    std::vector<int> others;
    std::vector<double> each;
    for (int i = 0; i < n; ++i) {
      const int b = others.emplace_back(rng.In(0, 29));
      double cosine[KeyCosines::kAtOnce];
      cosines.Of(a, {b, b, b, b}, cosine);
      each.push_back(cosine[0]);
    }
    const auto best = std::max_element(each.begin(), each.end());
    const KeyCosines::Nearest nearest = cosines.NearestOf(a, others);
    ASSERT_EQ(nearest.index, best - each.begin());
    ASSERT_EQ(nearest.cosine, *best);
  }
}

TEST(KeyCosines, OfAZeroKeyAreZero) {
  kv::HeadSlots slots(2);
  const float zero[2] = {0, 0};
  const float one[2] = {1, 0};
  const kernels::KernelTable& kernels = kernels::RefKernels();
  slots.Encode(kernels, {.key = zero, .value = one}, 1, Position{0});
  slots.Encode(kernels, {.key = one, .value = one}, 1, Position{1});
  double got[KeyCosines::kAtOnce];
  KeyCosines(slots).Of(0, {0, 1, 1, 1}, got);
  EXPECT_EQ(got[0], 0);
  EXPECT_EQ(got[1], 0);
  KeyCosines(slots).Of(1, {0, 1, 1, 1}, got);
  EXPECT_EQ(got[0], 0);
  EXPECT_NEAR(got[1], 1, 1e-6);
}

}  // namespace
}  // namespace vericache::compress
