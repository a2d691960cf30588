// Whether a head kept the slots that binary64 scores rank highest. Where two scores lie within the
// error of codes, either slot may be kept.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include "kv/packed_kv.h"
#include "tests/support/compress_jobs.h"

namespace vericache::testing_support {

struct Ranking {
  std::vector<double> scores;  // of all tokens of the source: slot = position
  int n_kept = 0;              // of the whole head
  int n_sinks = 0;
  int n_recent = 0;
  double tolerance = 0.0;  // of the threshold's magnitude
};

inline void ExpectBestKept(const kv::PackedHead& head, const Ranking& ranking) {
  std::set<int> kept;
  for (const Position position : head.positions) kept.insert(position.value);
  const int n = static_cast<int>(ranking.scores.size());
  ASSERT_EQ(static_cast<int>(kept.size()), ranking.n_kept);
  std::vector<double> sorted;
  for (int slot = 0; slot < n; ++slot) {
    if (slot < ranking.n_sinks || slot >= n - ranking.n_recent) {
      ASSERT_TRUE(kept.count(slot)) << slot << " is protected";
    } else {
      sorted.push_back(ranking.scores[static_cast<size_t>(slot)]);
    }
  }
  const int n_best = ranking.n_kept - (n - static_cast<int>(sorted.size()));
  if (n_best <= 0 || n_best >= static_cast<int>(sorted.size())) return;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const double threshold = sorted[static_cast<size_t>(n_best) - 1];
  const double room = ranking.tolerance * std::abs(threshold);
  for (int slot = ranking.n_sinks; slot < n - ranking.n_recent; ++slot) {
    const double score = ranking.scores[static_cast<size_t>(slot)];
    if (score > threshold + room) {
      EXPECT_TRUE(kept.count(slot)) << slot;
    }
    if (score < threshold - room) {
      EXPECT_FALSE(kept.count(slot)) << slot;
    }
  }
}

// Content without ties.
inline JobOptions UntiedJob(Rng& rng) {
  JobOptions options = AnyJob(rng);
  options.kv.content = rng.OneOf({KvContent::kNormal, KvContent::kSmooth});
  options.kv.n_tokens = rng.In(2, 500);
  return options;
}

}  // namespace vericache::testing_support
