// Packing and unpacking of the draft formats kQ8, kQ4 and kQ2: asymmetric codes, keys per channel
// of 64 slots, values per slot (KIVI). The exact definition is in docs/kv_format.md.
//
// Pure functions on raw memory: no state, no allocation; any thread.
// Source: Liu et al., KIVI, section 3 (keys per channel, values per token).
#pragma once

#include <cstddef>

#include "kernels/types.h"

namespace vericache::kernels {

// Slots that are packed together: 64, of which the first n_valid are given.
struct SlotGroup {
  KvFormat format = KvFormat::kQ4;  // not kI16
  int head_dim = 0;
  int n_valid = kSubBlockSlots;
};

// One group of 64 slots. Bits of slots from n_valid on are 0, and so are their value scales.
// Requires: finite floats below 2^60 in magnitude, 1 <= n_valid <= 64.
// Shapes:   keys, values [n_valid, head_dim] f32; out [KeyBytes(format, head_dim, 64)];
//           key scales [2, head_dim], value scales [2, 64] f32 (scale, mid).
void PackKeyGroup(const SlotGroup& group, const float* keys, std::byte* out, float* scales);
void PackValueGroup(const SlotGroup& group, const float* values, std::byte* out, float* scales);

// One slot of a run in f32. Requires: the run's format is packed.
// Shapes: out [head_dim].
void UnpackKey(KvFormat format, int head_dim, const SlotRun& run, int slot, float* out);
void UnpackValue(KvFormat format, int head_dim, const SlotRun& run, int slot, float* out);

}  // namespace vericache::kernels
