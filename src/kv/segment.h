// What attention and compressors read: segments of slots. Non-owning views, valid until the KV they
// came from next changes.
//
// A segment belongs to one (layer, KV head) and is cut into softmax chunks of 512 from its own slot
// 0 (docs/numerics.md, section 3). A KV is a short list of segments, attended in order: a full KV
// is one; a draft KV is body, then tail.
#pragma once

#include <span>
#include <vector>

#include "base/ids.h"
#include "kernels/types.h"
#include "kv/geometry.h"

namespace vericache::kv {

struct Segment {
  kernels::KvFormat format = kernels::KvFormat::kI16;
  int n_slots = 0;  // valid slots; runs may have capacity beyond
  // In order; each run's n_slots is its capacity, a multiple of 64.
  std::span<const kernels::SlotRun> runs;
  const Position* positions = nullptr;  // [n_slots] ascending; nullptr: first_position + slot
  const int32_t* degrees = nullptr;     // [n_slots] tokens a slot stands for; nullptr: all 1
  Position first_position{0};
  // Keys and values are stored rotated (kernels/hadamard.h).
  bool is_rotated = false;
  // Rows appended by the running pass live at the end of the causal segment (always the last one):
  // row r of the pass sees its slots [0, n_slots + r + 1). Rows see all slots of other segments.
  bool is_causal = false;

  Position PositionOf(int slot) const {
    return positions != nullptr ? positions[slot] : first_position + slot;
  }
  int32_t DegreeOf(int slot) const { return degrees != nullptr ? degrees[slot] : 1; }
  // Slots whose position is below `end`: always the first ones.
  int CountBefore(Position end) const;
};

// Where one new row of one head is stored: slot `slot` of a run in I16 layout.
struct RowSlot {
  int16_t* keys = nullptr;       // of the run
  int16_t* values = nullptr;     // of the run
  float* key_steps = nullptr;    // of the run
  float* value_steps = nullptr;  // of the run
  int slot = 0;
};

// The slots of one head of a block in I16: to read, and to write one of them.
kernels::SlotRun RunOf(const BlockLayout& layout, const std::byte* block, int head);
RowSlot RowOf(const BlockLayout& layout, std::byte* block, int head, int slot);

// What a compressor reads: keys, values, positions and degrees of every head. Immutable while it is
// read.
class KvSource {
 public:
  virtual ~KvSource() = default;
  virtual const KvShape& Shape() const = 0;
  // Committed slots only. Appends to `out`.
  virtual void Segments(int layer, int head, std::vector<Segment>& out) const = 0;
  // Tokens seen, kept or not.
  virtual int TokenCount() const = 0;
};

// What a forward pass reads and appends to. A pass writes rows [0, n) behind the committed slots of
// the causal segment; Commit makes them visible to later passes, and a row that is never committed
// dies there (I1).
class CausalKv : public KvSource {
 public:
  // Requires: the rows were reserved (each concrete KV says how).
  virtual RowSlot NewRow(int layer, int head, int row_idx) = 0;
};

}  // namespace vericache::kv
