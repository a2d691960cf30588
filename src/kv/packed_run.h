// One head's slots as one run in one allocation, in any format: keys, values, their scales, log
// weights. What a PackedHead is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/aligned_buffer.h"
#include "kernels/types.h"
#include "kv/head_slots.h"

namespace vericache::kv {

struct RunFormat {
  kernels::KvFormat format = kernels::KvFormat::kI16;
  int head_dim = 0;
  bool is_rotated = false;  // slots are rotated before they are rounded (kernels/hadamard.h)

  // Packed codes come in whole words of dims: 4 dims of 8 bits, 8 of 4, 16 of 2.
  bool IsPossible() const;
};

// Packs all slots; padding slots are 0. The run views `memory`, which the call allocates.
// I16 slots are stored bit for bit; for the others magnitudes are clamped to 2^59.
// Requires: the format is possible.
kernels::SlotRun PackRun(const RunFormat& format, const HeadSlots& slots, AlignedBuffer& memory);
// Reads one slot in f32, rotated back if it was. Requires: the format is not kI16, whose slots are
// read exactly. Shapes: key, value [head_dim].
void UnpackSlot(const RunFormat& format, const kernels::SlotRun& run, int slot,
                std::span<float> key, std::span<float> value);
// Bytes that n_slots slots take: their codes and scales, without padding slots and log weights. The
// key scales of a group of 64 count as soon as it has a slot.
size_t SlotBytes(const RunFormat& format, int n_slots);

// log2(degree), the same bits on every machine: what attention adds to a slot's score.
float LogWeight(int32_t degree);

}  // namespace vericache::kv
