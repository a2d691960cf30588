// One head of a source as a list of slots, whatever segments and formats they lie in: how
// compression methods look before they read.
//
// Threads: immutable; valid while the source does not change.
#pragma once

#include <span>
#include <vector>

#include "base/ids.h"
#include "kernels/kernels.h"
#include "kv/head_slots.h"
#include "kv/segment.h"

namespace vericache::kv {

class HeadView {
 public:
  // The slots of (layer, head) whose position is below `end`, in order.
  HeadView(const KvSource& source, int layer, int head, Position end);

  int Count() const { return n_slots_; }
  int HeadDim() const { return head_dim_; }
  // Clipped to the slots of the view.
  std::span<const Segment> Segments() const { return segments_; }
  Position PositionOf(int slot) const;
  // Slots whose position is below `end`.
  int CountBefore(Position end) const;

  // Reads the slots named, ascending. Slots in I16 come bit for bit; packed ones are dequantised
  // and encoded anew.
  // Cost: O(kept * head_dim).
  HeadSlots Gather(std::span<const int> kept, const kernels::KernelTable& kernels) const;
  HeadSlots GatherAll(const kernels::KernelTable& kernels) const;

 private:
  int head_dim_;
  int n_slots_ = 0;
  std::vector<Segment> segments_;
};

}  // namespace vericache::kv
