// Goal: the highest scores win, the lower slot among equals, whatever the values.
// Method: against a stable sort; infinities and NaN.

#include "compress/top_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "tests/support/property.h"

namespace vericache::compress {
namespace {

PROPERTY(TopSlots, AreTheFirstOfAStableSort, 30) {
  std::vector<float> scores(static_cast<size_t>(rng.In(0, 200)));
  const int n_distinct = rng.In(1, 50);
  for (float& score : scores) score = static_cast<float>(rng.In(-n_distinct, n_distinct));
  const int n_kept = rng.In(0, 210);
  std::vector<int> expected(scores.size());
  std::iota(expected.begin(), expected.end(), 0);
  std::stable_sort(expected.begin(), expected.end(), [&](int a, int b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  expected.resize(std::min(expected.size(), static_cast<size_t>(n_kept)));
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(TopSlots(scores, n_kept), expected);
}

TEST(TopSlots, RankNaNLowest) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(TopSlots(std::vector<float>{nan, -1, nan, inf, 0}, 3), (std::vector<int>{1, 3, 4}));
}

}  // namespace
}  // namespace vericache::compress
