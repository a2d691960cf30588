// Goal: H2O keeps the newest half of its budget and the heaviest slots before it, weighed by how
// many queries see each.
// Method: column sums in binary64 over random sources.

#include <gtest/gtest.h>

#include "tests/support/naive_attention.h"
#include "tests/support/ranking.h"

namespace vericache::compress {
namespace {

using testing_support::Compress;
using testing_support::RandomJob;

std::vector<double> ColumnMeans(const RandomJob& job, int head, int window) {
  const WindowQueries& queries = job.Hints().window;
  const kv::HeadSlots slots = testing_support::SlotsOf(job.Full(), 0, head, job.Full().Length());
  std::vector<double> scores = testing_support::NaiveWindowScores(
      slots, queries, 0, head, job.Full().Shape().n_kv_heads, window);
  const size_t n_asked = std::min(queries.positions.size(), static_cast<size_t>(window));
  for (size_t slot = 0; slot < scores.size(); ++slot) {
    int n_seeing = 0;
    for (size_t i = queries.positions.size() - n_asked; i < queries.positions.size(); ++i) {
      n_seeing += queries.positions[i] >= slots.positions[slot] ? 1 : 0;
    }
    scores[slot] /= n_seeing;
  }
  return scores;
}

PROPERTY(H2o, KeepsHeavyHittersAndTheNewest, 10) {
  const testing_support::JobOptions options = testing_support::UntiedJob(rng);
  const RandomJob job(rng, options);
  const int end = rng.Chance(0.5) ? options.kv.n_tokens : rng.In(1, options.kv.n_tokens);
  const int window = rng.OneOf({1, 16, 256});
  const double keep = rng.OneOf({0.1, 0.5});
  const double recent = rng.OneOf({0.0, 0.5});
  const kv::PackedKv packed =
      Compress(fmt::format("h2o:keep={},window={},recent={}", keep, window, recent), job.At(end));
  for (int head = 0; head < options.kv.shape.n_kv_heads; ++head) {
    std::vector<double> scores = ColumnMeans(job, head, window);
    scores.resize(static_cast<size_t>(end));
    const int n_kept = static_cast<int>(keep * end);
    testing_support::ExpectBestKept(packed.Head(0, head),
                                    {.scores = scores,
                                     .n_kept = n_kept,
                                     .n_recent = static_cast<int>(recent * n_kept),
                                     .tolerance = 2e-3});
  }
}

TEST(H2o, SaysThatItEncodesOneQuestion) {
  const Traits traits = testing_support::Make("h2o:window=32")->GetTraits();
  EXPECT_EQ(traits.needs, Needs::kWindowQueries);
  EXPECT_EQ(traits.n_window, 32);
  EXPECT_FALSE(traits.is_query_agnostic);
}

}  // namespace
}  // namespace vericache::compress
