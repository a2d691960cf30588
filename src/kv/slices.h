// A range of a segment's slots as the runs a kernel reads.
#pragma once

#include <span>

#include "kv/segment.h"

namespace vericache::kv {

inline constexpr int kMaxChunkRuns = kernels::kChunkSlots / kernels::kSubBlockSlots;

// The part of a run from first_slot on, n_slots long. Requires: first_slot is a multiple of 64.
kernels::SlotRun SliceRun(const kernels::SlotRun& run, kernels::KvFormat format, int head_dim,
                          int first_slot, int n_slots);

// The runs of slots [begin, begin + n_slots) of a segment, in order; the last may end inside its
// capacity. Requires: begin is a multiple of 64, n_slots <= 512, and the runs reach that far.
// Shapes: out [kMaxChunkRuns]; returns the ones filled.
std::span<const kernels::SlotRun> SliceSegment(const Segment& segment, int head_dim, int begin,
                                               int n_slots, kernels::SlotRun* out);

}  // namespace vericache::kv
