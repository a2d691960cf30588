// Goal: the hostile body is a function of its seeds, differs between them, and shows every
// format.
// Method: repeated draws.

#include <gtest/gtest.h>

#include <set>

#include "tests/support/compress_jobs.h"

namespace vericache::compress {
namespace {

using testing_support::Compress;
using testing_support::RandomJob;
using testing_support::SamePacked;

constexpr kv::KvShape kShape{.n_layers = 3, .n_kv_heads = 4, .head_dim = 16};

TEST(Hostile, IsAFunctionOfItsSeeds) {
  testing_support::Rng rng(1);
  const RandomJob random(rng, {.kv = {.shape = kShape, .n_tokens = 200}});
  const Job job = random.All();
  Job other_seed = job;
  other_seed.seed = 7;
  Job other_round = job;
  other_round.round = 1;
  EXPECT_TRUE(SamePacked(Compress("hostile", job, 1), Compress("hostile", job, 2)));
  EXPECT_FALSE(SamePacked(Compress("hostile", job), Compress("hostile", other_seed)));
  EXPECT_FALSE(SamePacked(Compress("hostile", job), Compress("hostile", other_round)));
  EXPECT_FALSE(SamePacked(Compress("hostile", job), Compress("hostile:seed=2", job)));
}

TEST(Hostile, ShowsEveryFormatAndMergedSlots) {
  testing_support::Rng rng(2);
  const RandomJob random(rng, {.kv = {.shape = kShape, .n_tokens = 200}});
  const kv::PackedKv packed = Compress("hostile", random.All());
  std::set<kernels::KvFormat> formats;
  int n_slots = 0;
  bool has_weights = false;
  for (int layer = 0; layer < kShape.n_layers; ++layer) {
    for (int head = 0; head < kShape.n_kv_heads; ++head) {
      formats.insert(packed.Head(layer, head).format);
      n_slots += packed.Head(layer, head).n_slots;
      has_weights = has_weights || packed.Head(layer, head).HasWeights();
    }
  }
  EXPECT_EQ(formats.size(), 4u);
  EXPECT_TRUE(has_weights);
  EXPECT_NEAR(n_slots, 0.5 * 200 * kShape.HeadCount(), 150);
}

}  // namespace
}  // namespace vericache::compress
