// How the attention of one layer is cut into tasks: a function of row counts, slot counts and the
// number of members, computed before the layer runs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kv/segment.h"

namespace vericache::attend {

struct HeadShape {
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;

  int Group() const { return n_heads / n_kv_heads; }  // query heads that share a KV head
};

// Consecutive rows of one sequence in a pass. A token has Group() query rows per KV head: query row
// i is token i / Group(), query head i % Group() of the KV head.
struct Group {
  kv::CausalKv* kv = nullptr;
  int first_row = 0;  // in the pass
  int n_rows = 0;     // tokens
};

inline constexpr int kMaxTaskRows = 96;  // query rows of one task

// Query rows of one (group, KV head): against one chunk, leaving partials; or against every chunk
// of every segment in order.
struct Task {
  int group_idx = 0;
  int kv_head = 0;
  int first_row = 0;  // query row
  int n_rows = 0;
  int segment_idx = kAllSegments;
  int chunk_idx = 0;         // in the segment
  size_t first_partial = 0;  // of query row first_row

  static constexpr int kAllSegments = -1;
};

// Query rows whose partials await merging: chunk c of row first_row + i is partial
// first_partial + c * n_rows + i.
struct PartialRows {
  int group_idx = 0;
  int kv_head = 0;
  int first_row = 0;
  int n_rows = 0;
  int n_chunks = 0;
  size_t first_partial = 0;
};

struct LayerPlan {
  std::vector<Task> tasks;
  std::vector<PartialRows> partial_rows;
  size_t n_partials = 0;
};

// Whether a group's tasks are cut by chunk, and its query rows into how many blocks.
struct Cut {
  bool is_by_chunk = false;
  int n_blocks = 1;
  bool operator==(const Cut&) const = default;
};
// n_rows query rows in each of n_kv_heads heads, the only work of n_members members.
Cut ChooseCut(int n_rows, int n_kv_heads, int n_members);

// Slots of a segment that the first n_tokens new tokens of a pass see.
inline int VisibleSlots(const kv::Segment& segment, int n_tokens) {
  return segment.n_slots + (segment.is_causal ? n_tokens : 0);
}

// Replaces *plan. cuts: one per group. Reads only the slot counts of segments, never their bytes.
void PlanLayer(std::span<const Group> groups, std::span<const Cut> cuts, const HeadShape& shape,
               int layer, LayerPlan* plan);

}  // namespace vericache::attend
