// Goal: Expected Attention keeps the sinks and the slots of the highest expected mass times
// value.
// Method: the variance of q . k over the window's queries, in binary64, in place of the
// quadratic form; merged slots; traits.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/naive_attention.h"
#include "tests/support/ranking.h"

namespace vericache::compress {
namespace {

using testing_support::Compress;
using testing_support::RandomJob;

double Length(const std::vector<float>& x) {
  double square = 0.0;
  for (const float value : x) square += double{value} * value;
  return std::sqrt(square);
}

// z of one query head for one key.
double LogExpectation(const WindowQueries& window, size_t head, size_t n_asked,
                      const std::vector<float>& key) {
  const auto n_heads = static_cast<size_t>(window.n_heads);
  std::vector<double> dots;
  for (size_t token = window.positions.size() - n_asked; token < window.positions.size(); ++token) {
    const float* q = window.q[0].data() + (token * n_heads + head) * key.size();
    double dot = 0.0;
    for (size_t dim = 0; dim < key.size(); ++dim) dot += double{q[dim]} * key[dim];
    dots.push_back(dot);
  }
  double mean = 0.0;
  for (const double dot : dots) mean += dot / static_cast<double>(dots.size());
  double variance = 0.0;
  for (const double dot : dots) {
    variance += (dot - mean) * (dot - mean) / static_cast<double>(dots.size());
  }
  const auto dims = static_cast<double>(key.size());
  return mean / std::sqrt(dims) + variance / (2 * dims);
}

// Shapes: [slots]; sinks have score 0.
std::vector<double> NaiveScores(const kv::HeadSlots& slots, const WindowQueries& window,
                                std::pair<size_t, size_t> query_heads, size_t n_asked,
                                size_t n_sinks) {
  std::vector<double> scores(static_cast<size_t>(slots.Count()), 0.0);
  std::vector<float> key(static_cast<size_t>(slots.head_dim));
  std::vector<float> value(key.size());
  for (size_t head = query_heads.first; head < query_heads.second; ++head) {
    std::vector<double> weights;
    for (size_t slot = n_sinks; slot < scores.size(); ++slot) {
      slots.Key(static_cast<int>(slot), key.data());
      weights.push_back(LogExpectation(window, head, n_asked, key) + std::log(slots.degrees[slot]));
    }
    testing_support::Softmax(weights);
    for (size_t i = 0; i < weights.size(); ++i) scores[n_sinks + i] += weights[i];
  }
  for (size_t slot = 0; slot < scores.size(); ++slot) {
    slots.Value(static_cast<int>(slot), value.data());
    scores[slot] *= Length(value);
  }
  return scores;
}

PROPERTY(Expected, KeepsTheHighestExpectation, 10) {
  const testing_support::JobOptions options = testing_support::UntiedJob(rng);
  const RandomJob job(rng, options);
  const WindowQueries& window = job.Hints().window;
  const int n = options.kv.n_tokens;
  const int n_window = rng.OneOf({1, 16, 256});
  const size_t n_asked = std::min(window.positions.size(), static_cast<size_t>(n_window));
  const double keep = rng.OneOf({0.1, 0.5});
  const kv::PackedKv packed =
      Compress(fmt::format("expected:keep={},window={},sinks=2", keep, n_window), job.All());
  const auto group = static_cast<size_t>(options.group);
  for (int head = 0; head < options.kv.shape.n_kv_heads; ++head) {
    const size_t first = static_cast<size_t>(head) * group;
    const std::vector<double> scores = NaiveScores(testing_support::SlotsOf(job.Full(), 0, head, n),
                                                   window, {first, first + group}, n_asked, 2);
    testing_support::ExpectBestKept(packed.Head(0, head),
                                    {.scores = scores,
                                     .n_kept = std::max(2, static_cast<int>(keep * n)),
                                     .n_sinks = 2,
                                     .tolerance = 1e-3});
  }
}

TEST(Expected, CountsMergedSlotsByTheirDegree) {
  testing_support::Rng rng(5);
  const RandomJob job(rng, {.kv = {.n_tokens = 300}});
  const kv::PackedKv merged = Compress("centroid:keep=0.4,recent=30,r=1", job.All());
  Job second = job.All();
  second.source = &merged;
  const kv::PackedKv packed = Compress("expected:keep=0.2,sinks=0", second);
  const std::vector<Position>& kept = packed.Head(0, 0).positions;
  const kv::HeadSlots slots = testing_support::SlotsOf(merged, 0, 0, 300);
  const std::vector<double> scores =
      NaiveScores(slots, job.Hints().window, {0, 1}, job.Hints().window.positions.size(), 0);
  double least_kept = INFINITY;
  double most_dropped = 0.0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::binary_search(kept.begin(), kept.end(), slots.positions[i])) {
      least_kept = std::min(least_kept, scores[i]);
    } else {
      most_dropped = std::max(most_dropped, scores[i]);
    }
  }
  EXPECT_EQ(kept.size(), 60u);
  EXPECT_GT(least_kept, most_dropped * (1 - 1e-3));
}

TEST(Expected, LooksAtTheNewestQueries) {
  const Traits traits = testing_support::Make("expected:window=32")->GetTraits();
  EXPECT_EQ(traits.needs, Needs::kWindowQueries);
  EXPECT_EQ(traits.n_window, 32);
  EXPECT_FALSE(traits.is_query_agnostic);
}

}  // namespace
}  // namespace vericache::compress
