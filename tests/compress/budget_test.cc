// Goal: a budget is a share of tokens that never cuts into what is protected.
// Method: examples at the edges, then every small case against the rule.

#include "compress/budget.h"

#include <gtest/gtest.h>

namespace vericache::compress {
namespace {

TEST(Budget, IsAShareOfTheTokensSeen) {
  const Budget budget{.keep = 0.25, .n_sinks = 4, .n_recent = 64};
  EXPECT_EQ(budget.For(0, 0, 8000).n_slots, 2000);
  EXPECT_EQ(budget.For(0, 0, 8003).n_slots, 2000);
  EXPECT_EQ(budget.For(0, 0, 8000).n_sinks, 4);
  EXPECT_EQ(budget.For(0, 0, 8000).n_recent, 64);
}

TEST(Budget, NeverCutsIntoWhatIsProtected) {
  const Budget budget{.keep = 0.25, .n_sinks = 4, .n_recent = 64};
  EXPECT_EQ(budget.For(0, 0, 100).n_slots, 68);
  EXPECT_EQ(budget.For(0, 0, 3).n_slots, 3);
  EXPECT_EQ(budget.For(0, 0, 3).n_sinks, 3);
  EXPECT_EQ(budget.For(0, 0, 3).n_recent, 0);
  EXPECT_EQ(budget.For(0, 0, 10).n_recent, 6);
  EXPECT_EQ(budget.For(0, 0, 0).n_slots, 0);
}

TEST(Budget, HoldsItsRuleInEverySmallCase) {
  for (const double keep : {0.01, 0.3, 0.5, 1.0}) {
    for (int n_sinks = 0; n_sinks < 4; ++n_sinks) {
      for (int n_recent = 0; n_recent < 4; ++n_recent) {
        for (int n = 0; n < 20; ++n) {
          const HeadBudget head =
              Budget{.keep = keep, .n_sinks = n_sinks, .n_recent = n_recent}.For(0, 0, n);
          EXPECT_LE(head.n_slots, n);
          EXPECT_LE(head.n_sinks + head.n_recent, head.n_slots);
          EXPECT_LE(head.n_slots, std::max(keep * n, 1.0 * (n_sinks + n_recent)));
          if (keep == 1.0) {
            EXPECT_EQ(head.n_slots, n);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace vericache::compress
