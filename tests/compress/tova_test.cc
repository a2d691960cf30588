// Goal: TOVA keeps the newest token and what the newest query attends to, the same tokens in all
// heads of a layer.
// Method: the mass of one query in binary64, summed over heads; a chain whose heads differ.

#include <gtest/gtest.h>

#include "tests/support/naive_attention.h"
#include "tests/support/ranking.h"

namespace vericache::compress {
namespace {

using testing_support::Compress;
using testing_support::RandomJob;

PROPERTY(Tova, KeepsWhatTheNewestQueryAttendsTo, 10) {
  const testing_support::JobOptions options = testing_support::UntiedJob(rng);
  const RandomJob job(rng, options);
  const kv::KvShape& shape = options.kv.shape;
  const int n = options.kv.n_tokens;
  const int layer = shape.n_layers - 1;
  const double keep = rng.OneOf({0.1, 0.5});
  std::vector<double> scores(static_cast<size_t>(n), 0.0);
  for (int head = 0; head < shape.n_kv_heads; ++head) {
    const std::vector<double> of_head =
        testing_support::NaiveWindowScores(testing_support::SlotsOf(job.Full(), layer, head, n),
                                           job.Hints().window, layer, head, shape.n_kv_heads, 1);
    for (size_t i = 0; i < scores.size(); ++i) scores[i] += of_head[i];
  }
  const kv::PackedKv packed = Compress(fmt::format("tova:keep={}", keep), job.All());
  for (int head = 0; head < shape.n_kv_heads; ++head) {
    testing_support::ExpectBestKept(packed.Head(layer, head),
                                    {.scores = scores,
                                     .n_kept = std::max(1, static_cast<int>(keep * n)),
                                     .n_recent = 1,
                                     .tolerance = 2e-3});
    EXPECT_EQ(packed.Head(layer, head).positions, packed.Head(layer, 0).positions);
  }
}

TEST(Tova, ScoresTokensByTheHeadsThatStillHaveThem) {
  testing_support::Rng rng(4);
  const RandomJob job(
      rng, {.kv = {.shape = {.n_layers = 2, .n_kv_heads = 3, .head_dim = 16}, .n_tokens = 300}});
  const kv::PackedKv first = Compress("knorm:keep=0.5", job.All());
  Job second = job.All();
  second.source = &first;
  const kv::PackedKv packed = Compress("tova:keep=0.25", second);
  for (int head = 0; head < 3; ++head) EXPECT_EQ(packed.Head(1, head).n_slots, 75);
}

TEST(Tova, AsksOneQuery) {
  const Traits traits = testing_support::Make("tova")->GetTraits();
  EXPECT_EQ(traits.needs, Needs::kWindowQueries);
  EXPECT_EQ(traits.n_window, 1);
  EXPECT_FALSE(traits.is_query_agnostic);
  EXPECT_FALSE(traits.is_ragged);
}

}  // namespace
}  // namespace vericache::compress
