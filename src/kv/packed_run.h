// One head's slots as one run in one allocation, in any format: keys, values, their scales, log
// weights. What a PackedHead is made of.
#pragma once

#include "base/aligned_buffer.h"
#include "kernels/types.h"
#include "kv/head_slots.h"

namespace vericache::kv {

struct RunFormat {
  kernels::KvFormat format = kernels::KvFormat::kI16;
  int head_dim = 0;
};

// Packs all slots; padding slots are 0. The run views `memory`, which the call allocates.
kernels::SlotRun PackRun(const RunFormat& format, const HeadSlots& slots, AlignedBuffer& memory);
// Reads one slot in f32. Requires: the format is not kI16, whose slots are read exactly.
// Shapes: key, value [head_dim].
void UnpackSlot(const RunFormat& format, const kernels::SlotRun& run, int slot, float* key,
                float* value);
// Bytes that n_slots slots take: codes and scales, without padding slots and log weights.
size_t SlotBytes(const RunFormat& format, int n_slots);

// log2(degree), the same bits on every machine: what attention adds to a slot's score.
float LogWeight(int32_t degree);

}  // namespace vericache::kv
