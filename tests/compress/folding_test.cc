// Goal: every evicted slot finds the nearest kept key within reach, blends are the weighted means,
// and what nothing joins keeps its bits.
// Method: random slots against the definition in binary64; examples.

#include "compress/folding.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compress/key_cosines.h"
#include "tests/support/compress_jobs.h"

namespace vericache::compress {
namespace {

using testing_support::JobOptions;
using testing_support::RandomJob;

kv::HeadSlots RandomSlots(testing_support::Rng& rng) {
  JobOptions options = testing_support::AnyJob(rng);
  options.kv.n_tokens = std::min(options.kv.n_tokens, 150);
  const RandomJob random(rng, options);
  return testing_support::SlotsOf(random.Full(), 0, 0, options.kv.n_tokens);
}

std::vector<int> SomeOf(testing_support::Rng& rng, int n) {
  std::vector<int> some;
  for (int i = 0; i < n; ++i) {
    if (rng.Chance(0.4)) some.push_back(i);
  }
  return some;
}

PROPERTY(Folding, FindsTheMostSimilarKeptSlotWithinReach, 40) {
  const kv::HeadSlots slots = RandomSlots(rng);
  const std::vector<int> kept = SomeOf(rng, slots.Count());
  const int reach = rng.OneOf({1, 2, 7, 1000});
  const std::vector<Fold> folds = FoldsOf(slots, kept, reach);
  if (kept.empty()) {
    ASSERT_TRUE(folds.empty());
    return;
  }
  ASSERT_EQ(folds.size(), static_cast<size_t>(slots.Count()) - kept.size());
  const KeyCosines cosines(slots);
  int n_before = 0;
  size_t next = 0;
  for (int slot = 0; slot < slots.Count(); ++slot) {
    if (std::binary_search(kept.begin(), kept.end(), slot)) {
      ++n_before;
      continue;
    }
    const Fold& fold = folds[next++];
    ASSERT_EQ(fold.evicted, slot);
    int best = -1;
    double highest = 0;
    const int last = std::min(static_cast<int>(kept.size()), n_before + reach);
    for (int i = std::max(0, n_before - reach); i < last; ++i) {
      const int b = kept[static_cast<size_t>(i)];
      double cosine[KeyCosines::kAtOnce];
      cosines.Of(slot, {b, b, b, b}, cosine);
      if (best >= 0 && cosine[0] <= highest) continue;
      best = i;
      highest = cosine[0];
    }
    ASSERT_EQ(fold.kept, best);
    ASSERT_EQ(fold.cosine, std::clamp(highest, -1.0, 1.0));
    ASSERT_EQ(fold.weight, 0);
  }
}

PROPERTY(Folding, BlendsWeightedMeansAndLeavesTheRest, 40) {
  const kv::HeadSlots slots = RandomSlots(rng);
  const std::vector<int> kept = SomeOf(rng, slots.Count());
  std::vector<Fold> folds = FoldsOf(slots, kept, 4);
  for (Fold& fold : folds) fold.weight = rng.Chance(0.5) ? 0.25 * rng.In(1, 8) : 0.0;
  const Blend blend{.kept_weight = 0.5 * rng.In(1, 4), .takes_keys = rng.Chance(0.5)};
  const kv::HeadSlots blended = Blended(slots, kept, folds, blend, kernels::RefKernels());
  ASSERT_EQ(blended.Count(), static_cast<int>(kept.size()));
  const auto dims = static_cast<size_t>(slots.head_dim);
  for (size_t i = 0; i < kept.size(); ++i) {
    const int slot = kept[i];
    std::vector<float> key(dims), value(dims), x(dims), y(dims);
    std::vector<double> key_sum(dims), value_sum(dims);
    double weight = 0, key_size = 0, value_size = 0;
    bool is_joined = false;
    const auto add = [&](int from, double w) {
      slots.Key(from, x.data());
      slots.Value(from, y.data());
      for (size_t dim = 0; dim < dims; ++dim) {
        key_sum[dim] += w * x[dim];
        value_sum[dim] += w * y[dim];
        key_size = std::max(key_size, std::abs(double{x[dim]}));
        value_size = std::max(value_size, std::abs(double{y[dim]}));
      }
      weight += w;
    };
    add(slot, blend.kept_weight);
    for (const Fold& fold : folds) {
      if (fold.kept != static_cast<int>(i) || fold.weight == 0) continue;
      is_joined = true;
      add(fold.evicted, fold.weight);
    }
    const int at = static_cast<int>(i);
    ASSERT_EQ(blended.positions[i], slots.positions[static_cast<size_t>(slot)]);
    ASSERT_EQ(blended.degrees[i], slots.degrees[static_cast<size_t>(slot)]);
    const bool has_own_key = !is_joined || !blend.takes_keys;
    ASSERT_TRUE(!has_own_key || std::equal(blended.KeyCodes(at), blended.KeyCodes(at) + dims,
                                           slots.KeyCodes(slot)));
    ASSERT_TRUE(!has_own_key || blended.key_steps[i] == slots.key_steps[static_cast<size_t>(slot)]);
    ASSERT_TRUE(is_joined || std::equal(blended.ValueCodes(at), blended.ValueCodes(at) + dims,
                                        slots.ValueCodes(slot)));
    blended.Key(at, key.data());
    blended.Value(at, value.data());
    for (size_t dim = 0; dim < dims; ++dim) {
      ASSERT_NEAR(value[dim], value_sum[dim] / weight, 1e-4 * value_size);
      ASSERT_TRUE(has_own_key || std::abs(key[dim] - key_sum[dim] / weight) <= 1e-3 * key_size);
    }
  }
}

TEST(FoldingDeathTest, WhatWasKeptHasToBeInTheHead) {
  testing_support::Rng rng(1);
  const RandomJob random(rng, {.kv = {.n_tokens = 6}});
  const kv::PackedKv kept = testing_support::Compress("streaming:keep=0.5,sinks=1", random.All());
  const kv::HeadView all(random.Full(), 0, 0, Position{6});
  EXPECT_EQ(KeptSlots({.layer = 0, .head = 0, .view = all}, kept.Head(0, 0)),
            (std::vector<int>{0, 4, 5}));
  const kv::HeadView fewer(random.Full(), 0, 0, Position{5});
  EXPECT_DEATH(KeptSlots({.layer = 0, .head = 0, .view = fewer}, kept.Head(0, 0)),
               "position 5 is in no slot");
}

}  // namespace
}  // namespace vericache::compress
