// Goal: a budget is a share of tokens that never cuts into what is protected.
// Method: examples at the edges, then every small case against the rule.

#include "compress/budget.h"

#include <gtest/gtest.h>

namespace vericache::compress {
namespace {

TEST(Budget, IsAShareOfTheTokensSeen) {
  const Budget budget{.keep = 0.25, .n_sinks = 4, .n_recent = 64};
  EXPECT_EQ(budget.For({}, 8000).n_slots, 2000);
  EXPECT_EQ(budget.For({}, 8003).n_slots, 2000);
  EXPECT_EQ(budget.For({}, 8000).n_sinks, 4);
  EXPECT_EQ(budget.For({}, 8000).n_recent, 64);
}

TEST(Budget, NeverCutsIntoWhatIsProtected) {
  const Budget budget{.keep = 0.25, .n_sinks = 4, .n_recent = 64};
  EXPECT_EQ(budget.For({}, 100).n_slots, 68);
  EXPECT_EQ(budget.For({}, 3).n_slots, 3);
  EXPECT_EQ(budget.For({}, 3).n_sinks, 3);
  EXPECT_EQ(budget.For({}, 3).n_recent, 0);
  EXPECT_EQ(budget.For({}, 10).n_recent, 6);
  EXPECT_EQ(budget.For({}, 0).n_slots, 0);
}

TEST(Budget, HoldsItsRuleInEverySmallCase) {
  for (const double keep : {0.01, 0.3, 0.5, 1.0}) {
    for (int n_sinks = 0; n_sinks < 4; ++n_sinks) {
      for (int n_recent = 0; n_recent < 4; ++n_recent) {
        for (int n = 0; n < 20; ++n) {
          const HeadBudget head =
              Budget{.keep = keep, .n_sinks = n_sinks, .n_recent = n_recent}.For({}, n);
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

// Of every layer of a model.
std::vector<int> LayerBudgets(const Budget& budget, int n_layers, int n_tokens) {
  std::vector<int> slots;
  for (int layer = 0; layer < n_layers; ++layer) {
    slots.push_back(budget.For({.layer = layer, .n_layers = n_layers}, n_tokens).n_slots);
  }
  return slots;
}

TEST(Budget, FallsFromTheFirstLayerToTheLast) {
  // T = 100 of 1000: from 195 down to 5, 38 a layer.
  const Budget steep{.keep = 0.1, .division = Division::kLayer};
  EXPECT_EQ(LayerBudgets(steep, 6, 1000), (std::vector<int>{195, 157, 119, 81, 43, 5}));
  // T = 800 of 1000: no layer has more than 1000.
  const Budget flat{.keep = 0.8, .division = Division::kLayer};
  EXPECT_EQ(LayerBudgets(flat, 3, 1000), (std::vector<int>{1000, 800, 600}));
  // What is protected is no part of the slope: T = 90 of 990.
  const Budget guarded{.keep = 0.1, .n_sinks = 4, .n_recent = 6, .division = Division::kLayer};
  EXPECT_EQ(LayerBudgets(guarded, 2, 1000), (std::vector<int>{185, 14}));
  EXPECT_EQ(LayerBudgets(steep, 1, 1000), (std::vector<int>{100}));
}

TEST(Budget, NamesADivisionAsItIsRead) {
  for (const Division division : {Division::kUniform, Division::kLayer, Division::kHead}) {
    const MethodSpec spec{.name = "any", .pairs = {{"budget", NameOf(division)}}};
    Parameters parameters(spec);
    EXPECT_EQ(ReadDivision(parameters, true), division);
    EXPECT_TRUE(parameters.Check().has_value());
  }
  EXPECT_EQ(NameOf(Division::kHead), "head");
}

TEST(Budget, GivesLayersTogetherNoMoreThanTheShare) {
  for (const double keep : {0.01, 0.3, 0.5, 0.9, 1.0}) {
    for (const int n_layers : {1, 2, 3, 30}) {
      for (int n = 0; n < 300; n += 7) {
        int sum = 0;
        for (const int slots : LayerBudgets(
                 {.keep = keep, .n_sinks = 2, .division = Division::kLayer}, n_layers, n)) {
          EXPECT_LE(slots, n);
          EXPECT_GE(slots, std::min(n, 2));
          sum += slots;
        }
        const int whole = n_layers * Budget{.keep = keep, .n_sinks = 2}.For({}, n).n_slots;
        EXPECT_LE(sum, whole);
        EXPECT_GE(sum, whole - n_layers);  // rounding
      }
    }
  }
}

}  // namespace
}  // namespace vericache::compress
