#include "attend/plan.h"

#include <algorithm>

namespace vericache::attend {
namespace {

// Up to here a chunk's keys and values are read once for all rows of a task anyway, and cutting by
// chunk gives more tasks than rows could.
constexpr int kMaxRowsByChunk = 64;
// Rows of a kernel tile: smaller row blocks would read keys and values for too few rows.
constexpr int kMinBlockRows = 12;

constexpr int CeilDiv(int a, int b) { return (a + b - 1) / b; }

class LayerPlanner {
 public:
  LayerPlanner(const HeadShape& shape, int layer, LayerPlan* plan)
      : shape_(shape), layer_(layer), plan_(plan) {
    plan_->tasks.clear();
    plan_->partial_rows.clear();
    plan_->n_partials = 0;
  }

  void Add(const Group& group, int group_idx, const Cut& cut) {
    const int n_rows = group.n_rows * shape_.Group();
    const int block = CeilDiv(CeilDiv(n_rows, cut.n_blocks), kMinBlockRows) * kMinBlockRows;
    for (int head = 0; head < shape_.n_kv_heads; ++head) {
      if (cut.is_by_chunk) {
        segments_.clear();
        group.kv->Segments(layer_, head, segments_);
      }
      for (int first = 0; first < n_rows; first += block) {
        const Task task{.group_idx = group_idx,
                        .kv_head = head,
                        .first_row = first,
                        .n_rows = std::min(block, n_rows - first)};
        if (cut.is_by_chunk) {
          AddChunks(task);
        } else {
          plan_->tasks.push_back(task);
        }
      }
    }
  }

 private:
  void AddChunks(Task task) {
    const size_t first_partial = plan_->n_partials;
    const int n_tokens = (task.first_row + task.n_rows - 1) / shape_.Group() + 1;
    int n_chunks = 0;
    for (size_t s = 0; s < segments_.size(); ++s) {
      task.segment_idx = static_cast<int>(s);
      const int n_in_segment = CeilDiv(VisibleSlots(segments_[s], n_tokens), kernels::kChunkSlots);
      for (int c = 0; c < n_in_segment; ++c) {
        task.chunk_idx = c;
        task.first_partial = plan_->n_partials;
        plan_->tasks.push_back(task);
        plan_->n_partials += static_cast<size_t>(task.n_rows);
      }
      n_chunks += n_in_segment;
    }
    plan_->partial_rows.push_back({.group_idx = task.group_idx,
                                   .kv_head = task.kv_head,
                                   .first_row = task.first_row,
                                   .n_rows = task.n_rows,
                                   .n_chunks = n_chunks,
                                   .first_partial = first_partial});
  }

  const HeadShape& shape_;
  int layer_;
  LayerPlan* plan_;
  std::vector<kv::Segment> segments_;
};

}  // namespace

Cut ChooseCut(int n_rows, int n_kv_heads, int n_members) {
  Cut cut{.is_by_chunk = n_rows <= kMaxRowsByChunk, .n_blocks = CeilDiv(n_rows, kMaxTaskRows)};
  if (cut.is_by_chunk) return cut;
  // More and smaller blocks while the last round would leave members idle.
  int n_blocks = cut.n_blocks;
  while (n_kv_heads * n_blocks < 4 * n_members && n_kv_heads * n_blocks % n_members != 0 &&
         n_rows / (n_blocks + 1) >= kMinBlockRows) {
    ++n_blocks;
  }
  if (n_kv_heads * n_blocks >= 2 * n_members) return {.is_by_chunk = false, .n_blocks = n_blocks};
  return {.is_by_chunk = n_members > 1, .n_blocks = cut.n_blocks};
}

void PlanLayer(std::span<const Group> groups, std::span<const Cut> cuts, const HeadShape& shape,
               int layer, LayerPlan* plan) {
  LayerPlanner planner(shape, layer, plan);
  for (size_t i = 0; i < groups.size(); ++i) planner.Add(groups[i], static_cast<int>(i), cuts[i]);
}

}  // namespace vericache::attend
