// Goal: eviction by score keeps what is protected and the best of the rest, as many as the
// budget says, however it is divided.
// Method: made-up scores: examples, then random ones checked against counts and order.

#include "compress/keep_best.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "tests/support/compress_jobs.h"

namespace vericache::compress {
namespace {

using testing_support::HoldsSlots;
using testing_support::RandomJob;

kv::PackedKv Keep(const Job& job, const Budget& budget, const HeadScores& scores) {
  ThreadTeam team(2);
  return KeepBest(job, team, budget, scores);
}

TEST(KeepBest, KeepsSinksTheNewestAndTheBestBetween) {
  testing_support::Rng rng(1);
  const RandomJob job(rng, {.kv = {.n_tokens = 10}});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const HeadScores scores = {{0, 0, 5, nan, 7, 6, 7, 1, 0, 0}};
  EXPECT_TRUE(HoldsSlots(Keep(job.All(), {.keep = 0.6, .n_sinks = 2, .n_recent = 1}, scores),
                         job.Full(), {0, 0}, {0, 1, 4, 5, 6, 9}));
  // What is protected is kept whatever the share.
  EXPECT_TRUE(HoldsSlots(Keep(job.All(), {.keep = 0.1, .n_sinks = 2, .n_recent = 1}, scores),
                         job.Full(), {0, 0}, {0, 1, 9}));
}

TEST(KeepBest, LetsHeadsOfALayerKeepDifferentCounts) {
  testing_support::Rng rng(1);
  const RandomJob job(
      rng, {.kv = {.shape = {.n_layers = 1, .n_kv_heads = 2, .head_dim = 16}, .n_tokens = 6}});
  const HeadScores scores = {{9, 8, 7, 6, 5, 4}, {0, 1, 2, 3, 0, 0}};
  const kv::PackedKv packed =
      Keep(job.All(), {.keep = 0.5, .n_recent = 1, .division = Division::kHead}, scores);
  EXPECT_TRUE(HoldsSlots(packed, job.Full(), {0, 0}, {0, 1, 2, 3, 5}));
  EXPECT_TRUE(HoldsSlots(packed, job.Full(), {0, 1}, {5}));
}

PROPERTY(KeepBest, HoldsTheSumOfALayerHoweverItIsDivided, 15) {
  testing_support::JobOptions options = testing_support::AnyJob(rng);
  const RandomJob job(rng, options);
  const kv::KvShape& shape = options.kv.shape;
  const int n = options.kv.n_tokens;
  HeadScores scores(static_cast<size_t>(shape.HeadCount()));
  for (std::vector<float>& of_head : scores) {
    for (int i = 0; i < n; ++i) of_head.push_back(rng.Chance(0.3) ? 1.0f : rng.Normal());
  }
  Budget budget{
      .keep = rng.OneOf({0.01, 0.3, 1.0}), .n_sinks = rng.In(0, 5), .n_recent = rng.In(0, 5)};
  for (const Division division : {Division::kUniform, Division::kLayer, Division::kHead}) {
    budget.division = division;
    const kv::PackedKv packed = Keep(job.All(), budget, scores);
    for (int layer = 0; layer < shape.n_layers; ++layer) {
      const HeadBudget of_head = budget.For({.layer = layer, .n_layers = shape.n_layers}, n);
      int sum = 0;
      for (int head = 0; head < shape.n_kv_heads; ++head) {
        const int n_slots = packed.Head(layer, head).n_slots;
        EXPECT_GE(n_slots, of_head.n_sinks + of_head.n_recent);
        if (division != Division::kHead) {
          EXPECT_EQ(n_slots, of_head.n_slots);
        }
        sum += n_slots;
      }
      EXPECT_EQ(sum, shape.n_kv_heads * of_head.n_slots);
    }
  }
}

}  // namespace
}  // namespace vericache::compress
