// Goal: heads keep the best scores of their layer together, a fifth of their own for certain.
// Method: examples; random scores against a naive choice, one slot at a time.

#include "compress/head_division.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/property.h"

namespace vericache::compress {
namespace {

TEST(DivideAmongHeads, GivesSlotsToTheHeadWithTheBestScores) {
  const std::vector<float> strong = {9, 8, 7, 6, 5};
  const std::vector<float> weak = {1, 2, 3, 4, 0};
  EXPECT_EQ(DivideAmongHeads(std::vector<HeadChoice>{{strong, 3}, {weak, 3}}),
            (std::vector<int>{5, 1}));
  // 0.2 * 5 = 1 is certain.
  EXPECT_EQ(DivideAmongHeads(std::vector<HeadChoice>{{strong, 0}, {weak, 5}}),
            (std::vector<int>{4, 1}));
}

TEST(DivideAmongHeads, GivesEqualScoresToTheLowerHead) {
  const std::vector<float> same(10, 1.0f);
  EXPECT_EQ(DivideAmongHeads(std::vector<HeadChoice>{{same, 5}, {same, 5}}),
            (std::vector<int>{9, 1}));
}

TEST(DivideAmongHeads, DividesNothing) {
  EXPECT_EQ(DivideAmongHeads({}), std::vector<int>{});
  EXPECT_EQ(DivideAmongHeads(std::vector<HeadChoice>{{{}, 0}, {{}, 0}}), (std::vector<int>{0, 0}));
}

// Takes one slot after the other: first each head's certain ones, then the best of all.
std::vector<int> Naive(std::vector<std::vector<float>> heads, const std::vector<int>& n_kept) {
  std::vector<int> counts(heads.size(), 0);
  const auto take_best = [&](size_t begin, size_t end) {
    size_t best_head = begin;
    int best = -1;
    for (size_t head = begin; head < end; ++head) {
      for (size_t i = 0; i < heads[head].size(); ++i) {
        if (heads[head][i] < 0) continue;  // taken
        if (best >= 0 && heads[head][i] <= heads[best_head][static_cast<size_t>(best)]) continue;
        best_head = head;
        best = static_cast<int>(i);
      }
    }
    heads[best_head][static_cast<size_t>(best)] = -1;
    ++counts[best_head];
  };
  int n_left = std::accumulate(n_kept.begin(), n_kept.end(), 0);
  for (size_t head = 0; head < heads.size(); ++head) {
    for (int i = 0; i < n_kept[head] / 5; ++i, --n_left) take_best(head, head + 1);
  }
  for (; n_left > 0; --n_left) take_best(0, heads.size());
  return counts;
}

PROPERTY(DivideAmongHeads, EqualsANaiveChoice, 30) {
  std::vector<std::vector<float>> scores(static_cast<size_t>(rng.In(1, 4)));
  std::vector<int> n_kept;
  std::vector<HeadChoice> heads;
  for (std::vector<float>& of_head : scores) {
    of_head.resize(static_cast<size_t>(rng.In(1, 40)));
    for (float& score : of_head) score = static_cast<float>(rng.In(0, 30));  // with ties
    n_kept.push_back(rng.In(0, static_cast<int>(of_head.size())));
    heads.push_back({of_head, n_kept.back()});
  }
  EXPECT_EQ(DivideAmongHeads(heads), Naive(scores, n_kept));
}

}  // namespace
}  // namespace vericache::compress
