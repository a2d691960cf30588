// Goal: tasks cover every (row, head, visible chunk) once, partials do not overlap, and the cut
// follows row and thread counts.
// Method: counting over plans of many shapes.
#include "attend/plan.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "tests/support/segmented_kv.h"

namespace vericache::attend {
namespace {

using testing_support::SegmentedKv;

constexpr HeadShape kShape{.n_heads = 6, .n_kv_heads = 2, .head_dim = 16};

TEST(ChooseCut, CutsFewRowsByChunkAndManyByRow) {
  EXPECT_EQ(ChooseCut(1, 3, 2), (Cut{true, 1}));
  EXPECT_EQ(ChooseCut(64, 3, 2), (Cut{true, 1}));
  EXPECT_EQ(ChooseCut(96, 3, 2), (Cut{false, 2}));  // three blocks would leave one thread idle
  EXPECT_EQ(ChooseCut(96, 4, 2), (Cut{false, 1}));
  EXPECT_EQ(ChooseCut(1536, 3, 2), (Cut{false, 16}));
  EXPECT_EQ(ChooseCut(96, 3, 1), (Cut{false, 1}));
  EXPECT_EQ(ChooseCut(96, 3, 64), (Cut{true, 1}));  // too few rows for so many threads
}

// Chunks that tasks give to (query row, head).
using Coverage = std::map<std::tuple<int, int>, std::multiset<std::tuple<int, int>>>;

TEST(PlanLayer, CoversEveryVisibleChunkOnce) {
  for (const int n_rows : {1, 7, 40, 200}) {
    SegmentedKv kv({1, 2, 16}, {600, 0, 510}, n_rows);
    const Group group{.kv = &kv, .first_row = 0, .n_rows = n_rows};
    for (const Cut cut : {Cut{true, 1}, Cut{true, (n_rows * 3 + 95) / 96}}) {
      if (n_rows * 3 > kMaxTaskRows * cut.n_blocks) continue;
      LayerPlan plan;
      PlanLayer({&group, 1}, {&cut, 1}, kShape, 0, &plan);
      Coverage coverage;
      std::set<size_t> partials;
      for (const Task& task : plan.tasks) {
        ASSERT_LE(task.n_rows, kMaxTaskRows);
        for (int i = 0; i < task.n_rows; ++i) {
          coverage[{task.first_row + i, task.kv_head}].insert({task.segment_idx, task.chunk_idx});
          EXPECT_TRUE(partials.insert(task.first_partial + static_cast<size_t>(i)).second);
        }
      }
      EXPECT_EQ(partials.size(), plan.n_partials);
      EXPECT_EQ(coverage.size(), static_cast<size_t>(n_rows * 3 * 2));
      for (const auto& [row_and_head, chunks] : coverage) {
        std::multiset<std::tuple<int, int>> needed = {{0, 0}, {0, 1}, {2, 0}};
        const int n_seen = 510 + std::get<0>(row_and_head) / 3 + 1;
        for (int c = 1; c * 512 < n_seen; ++c) needed.insert({2, c});
        for (const auto& chunk : needed) EXPECT_EQ(chunks.count(chunk), 1u);
      }
    }
  }
}

TEST(PlanLayer, ListsThePartialsOfEachRowInChunkOrder) {
  SegmentedKv kv({1, 2, 16}, {600, 510}, 3);
  const Group group{.kv = &kv, .first_row = 0, .n_rows = 3};
  const Cut cut{.is_by_chunk = true, .n_blocks = 1};
  LayerPlan plan;
  PlanLayer({&group, 1}, {&cut, 1}, kShape, 0, &plan);
  ASSERT_EQ(plan.partial_rows.size(), 2u);
  ASSERT_EQ(plan.tasks.size(), 8u);  // two heads, two chunks of each segment
  const PartialRows& rows = plan.partial_rows[1];
  EXPECT_EQ(rows.kv_head, 1);
  EXPECT_EQ(rows.n_chunks, 4);
  for (size_t c = 0; c < 4; ++c) {
    EXPECT_EQ(plan.tasks[4 + c].first_partial,
              rows.first_partial + c * static_cast<size_t>(rows.n_rows));
  }
}

TEST(PlanLayer, LeavesRowBlocksWhole) {
  SegmentedKv kv({1, 2, 16}, {600}, 70);
  const Group group{.kv = &kv, .first_row = 0, .n_rows = 70};
  const Cut cut{.is_by_chunk = false, .n_blocks = 3};
  LayerPlan plan;
  PlanLayer({&group, 1}, {&cut, 1}, kShape, 0, &plan);
  EXPECT_EQ(plan.n_partials, 0u);
  EXPECT_TRUE(plan.partial_rows.empty());
  std::set<std::tuple<int, int>> rows;
  for (const Task& task : plan.tasks) {
    EXPECT_EQ(task.segment_idx, Task::kAllSegments);
    for (int i = 0; i < task.n_rows; ++i) {
      EXPECT_TRUE(rows.insert({task.kv_head, task.first_row + i}).second);
    }
  }
  EXPECT_EQ(rows.size(), 2u * 70u * 3u);
}

}  // namespace
}  // namespace vericache::attend
