// Goal: Knorm keeps the sinks and the keys of smallest norm, bit for bit.
// Method: norms in binary64 over random sources; an example.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/ranking.h"

namespace vericache::compress {
namespace {

using testing_support::Compress;
using testing_support::RandomJob;

TEST(Knorm, KeepsTheShortKeys) {
  testing_support::Rng rng(1);
  testing_support::RandomKv source(rng, {.n_tokens = 0}, 10);
  EXPECT_TRUE(source->Reserve(6).has_value());
  const float lengths[] = {9, 3, 8, 1, 7, 2};
  for (int row = 0; row < 6; ++row) {
    std::vector<float> key(16, 0.0f);
    key[static_cast<size_t>(row)] = row % 2 == 0 ? lengths[row] : -lengths[row];
    testing_support::WriteRow(source->NewRow(0, 0, row), key, key);
  }
  source->Commit(6);
  const Job job{.source = &*source, .end = Position{6}};
  const kv::PackedKv packed = Compress("knorm:keep=0.5,sinks=1", job);
  EXPECT_TRUE(testing_support::HoldsSlots(packed, *source, {0, 0}, {0, 3, 5}));
}

PROPERTY(Knorm, KeepsTheSmallestNorms, 10) {
  const testing_support::JobOptions options = testing_support::UntiedJob(rng);
  const RandomJob job(rng, options);
  const int n = options.kv.n_tokens;
  const double keep = rng.OneOf({0.1, 0.5});
  const kv::PackedKv packed = Compress(fmt::format("knorm:keep={},sinks=2", keep), job.All());
  for (int head = 0; head < options.kv.shape.n_kv_heads; ++head) {
    const kv::HeadSlots slots = testing_support::SlotsOf(job.Full(), 0, head, n);
    std::vector<float> key(static_cast<size_t>(slots.head_dim));
    std::vector<double> scores;
    for (int slot = 0; slot < n; ++slot) {
      slots.Key(slot, key.data());
      double square = 0.0;
      for (const float x : key) square += double{x} * x;
      scores.push_back(-std::sqrt(square));
    }
    testing_support::ExpectBestKept(packed.Head(0, head),
                                    {.scores = scores,
                                     .n_kept = std::max(2, static_cast<int>(keep * n)),
                                     .n_sinks = 2,
                                     .tolerance = 1e-5});
  }
}

TEST(Knorm, NeedsNothingAndIsSafeToShare) {
  const Traits traits = testing_support::Make("knorm")->GetTraits();
  EXPECT_EQ(traits.needs, Needs::kNothing);
  EXPECT_TRUE(traits.is_query_agnostic);
  EXPECT_FALSE(traits.is_ragged);
  EXPECT_TRUE(testing_support::Make("knorm:budget=head")->GetTraits().is_ragged);
}

}  // namespace
}  // namespace vericache::compress
