// Single slots of I16 runs: codes and steps in and out of the tile layout, bit for bit. The runs
// must be kI16.
#pragma once

#include <cstdint>

#include "kernels/types.h"
#include "kv/segment.h"

namespace vericache::kv {

// One slot, row-major. Shapes: key, value [head_dim].
struct I16Slot {
  const int16_t* key = nullptr;
  const int16_t* value = nullptr;
  float key_step = 0.0f;
  float value_step = 0.0f;
};

// Reads a slot into the memory given. Shapes: key, value [head_dim].
I16Slot ReadI16Slot(const kernels::SlotRun& run, int head_dim, int slot, int16_t* key,
                    int16_t* value);
void WriteI16Slot(const RowSlot& to, int head_dim, const I16Slot& slot);
// Copies slot `from_slot` of a run to a row of the same or another run.
void CopyI16Slot(const kernels::SlotRun& from, int from_slot, int head_dim, const RowSlot& to);

}  // namespace vericache::kv
