// Attention of a pass's rows over the segments of their KVs: cuts the work into tasks, runs them on
// the team, merges partials in chunk order.
//
// A group with few rows is cut by chunk: each task leaves partials, which are merged afterwards.
// One with many rows is cut into row blocks, each walking its chunks and merging as it goes. Both
// see the same operations per row: task shapes depend on row and thread counts, bits do not (I3).
// Threads: BeginPass and PlanLayer by one member; RunTasks and MergePartials by all, barriers
//          between (each says which).
// Source:  docs/numerics.md section 3.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "attend/plan.h"
#include "base/aligned_buffer.h"
#include "base/thread_team.h"
#include "base/work_shares.h"
#include "kernels/kernels.h"

namespace vericache::attend {

class Attention {
 public:
  Attention(const kernels::KernelTable& kernels, const HeadShape& shape, int n_members);
  ~Attention();

  // Plans every layer for rows whose K and V will be appended to groups[i].kv. `groups` stays valid
  // until the pass ends.
  void BeginPass(std::span<const Group> groups, int n_layers);
  // Some rows' results are partials after RunTasks.
  bool HasPartials() const { return has_partials_; }
  // All rows' results are.
  bool HasOnlyPartials() const { return has_only_partials_; }

  // Deals out the layer's tasks. Called by one member, a barrier before RunTasks and one after the
  // RunTasks of the layer before.
  void DealLayer(int layer);
  // This member's tasks. Requires: q and the new rows' K and V of this layer are written (barrier).
  // Shapes: q, out [rows of the pass, n_heads * head_dim] f32; rows cut by chunk are not written.
  void RunTasks(Member& member, int layer, const float* q, float* out);
  // Merges the partials of query heads [head_begin, head_end) into out. Requires: every member's
  // RunTasks is done (barrier).
  void MergePartials(int layer, int head_begin, int head_end, float* out) const;

 private:
  class Worker;

  const kernels::KernelTable& kernels_;
  HeadShape shape_;
  int n_members_;
  std::span<const Group> groups_;
  std::vector<LayerPlan> plans_;  // [n_layers]
  bool has_partials_ = false;
  bool has_only_partials_ = false;
  WorkShares shares_;
  AlignedBuffer partial_max_;  // [partials of the largest layer] f32
  AlignedBuffer partial_sum_;
  AlignedBuffer partial_out_;  // [partials, head_dim] f32
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace vericache::attend
