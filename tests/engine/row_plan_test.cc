// Goal: budgets hold, decoding rows come whole and in turn, prefill rows go to the oldest first,
// and nobody starves.
// Method: examples; random traces in which everyone is served within a bounded number of passes.

#include "engine/row_plan.h"

#include <gtest/gtest.h>

#include "tests/support/property.h"

namespace vericache::engine {
namespace {

using testing_support::Rng;

TEST(RowPlan, GivesDecodingRowsWhole) {
  const std::vector<RowDemand> demands = {{.n_rows = 1}, {.n_rows = 8}, {.n_rows = 1}};
  const auto grants = PlanRows(demands, {.n_decode = 128, .n_prefill = 256});
  ASSERT_EQ(grants.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(grants[i].session, static_cast<int>(i));
    EXPECT_EQ(grants[i].n_rows, demands[i].n_rows);
  }
}

TEST(RowPlan, ServesTheLongestWaitingFirst) {
  const std::vector<RowDemand> demands = {{.n_rows = 30, .last_served = 9},
                                          {.n_rows = 30, .last_served = 7},
                                          {.n_rows = 30, .last_served = 8}};
  const auto grants = PlanRows(demands, {.n_decode = 64, .n_prefill = 256});
  ASSERT_EQ(grants.size(), 2u);
  EXPECT_EQ(grants[0].session, 1);
  EXPECT_EQ(grants[1].session, 2);
}

TEST(RowPlan, AShortDemandDoesNotOvertakeALongOne) {
  const std::vector<RowDemand> demands = {{.n_rows = 100, .last_served = 1},
                                          {.n_rows = 60, .last_served = 2},
                                          {.n_rows = 1, .last_served = 3}};
  const auto grants = PlanRows(demands, {.n_decode = 128, .n_prefill = 256});
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].session, 0);
}

TEST(RowPlan, PrefillRowsGoToTheOldestFirst) {
  const std::vector<RowDemand> demands = {{.is_prefill = true, .n_rows = 100},
                                          {.n_rows = 1},
                                          {.is_prefill = true, .n_rows = 1000},
                                          {.is_prefill = true, .n_rows = 5}};
  const auto grants = PlanRows(demands, {.n_decode = 128, .n_prefill = 256});
  ASSERT_EQ(grants.size(), 3u);
  EXPECT_EQ(grants[0].session, 0);
  EXPECT_EQ(grants[0].n_rows, 100);
  EXPECT_EQ(grants[1].session, 2);
  EXPECT_EQ(grants[1].n_rows, 156);
  EXPECT_EQ(grants[2].session, 1);
}

TEST(RowPlan, NothingWantedIsNothingGranted) {
  EXPECT_TRUE(PlanRows({}, {.n_decode = 128, .n_prefill = 256}).empty());
  const std::vector<RowDemand> demands(3);
  EXPECT_TRUE(PlanRows(demands, {.n_decode = 128, .n_prefill = 256}).empty());
}

PROPERTY(RowPlan, KeepsItsBudgetsAndServesEverybody, 50) {
  const RowBudget budget{.n_decode = rng.In(8, 128), .n_prefill = rng.In(1, 256)};
  std::vector<RowDemand> demands(static_cast<size_t>(rng.In(1, 40)));
  const auto renew = [&](RowDemand& demand) {
    demand.is_prefill = rng.Chance(0.3);
    demand.n_rows = demand.is_prefill ? rng.In(1, 2000) : rng.In(1, budget.n_decode);
  };
  for (RowDemand& demand : demands) renew(demand);
  for (int64_t pass = 1; pass < 300; ++pass) {
    int n_decode = 0;
    int n_prefill = 0;
    for (const RowGrant& grant : PlanRows(demands, budget)) {
      RowDemand& demand = demands[static_cast<size_t>(grant.session)];
      ASSERT_GT(grant.n_rows, 0);
      (demand.is_prefill ? n_prefill : n_decode) += grant.n_rows;
      demand.last_served = pass;
      if (demand.is_prefill) {
        ASSERT_LE(grant.n_rows, demand.n_rows);
        demand.n_rows -= grant.n_rows;
        if (demand.n_rows == 0) demand = {.n_rows = 1, .last_served = pass};
      } else {
        ASSERT_EQ(grant.n_rows, demand.n_rows);
        demand.n_rows = rng.In(1, budget.n_decode);
      }
    }
    ASSERT_LE(n_decode, budget.n_decode);
    ASSERT_LE(n_prefill, budget.n_prefill);
    ASSERT_GT(n_decode + n_prefill, 0);
    // One demand a pass in the worst case: nobody waits longer than there are others.
    for (const RowDemand& demand : demands) {
      if (!demand.is_prefill) {
        ASSERT_GE(demand.last_served, pass - static_cast<int64_t>(demands.size()));
      }
    }
  }
}

}  // namespace
}  // namespace vericache::engine
