// Encodes the K and V of new rows into the slots a KV gives them.
#pragma once

#include "kernels/kernels.h"
#include "kv/segment.h"

namespace vericache::attend {

// Stores one head's key (after RoPE) or value. A NaN or infinity is stored as 0.
// Shapes: key, value [head_dim] f32. Returns: whether all of it was finite.
// Source: docs/numerics.md section 3.
bool AppendKey(const kernels::KernelTable& kernels, const float* key, int head_dim,
               const kv::RowSlot& slot);
bool AppendValue(const kernels::KernelTable& kernels, const float* value, int head_dim,
                 const kv::RowSlot& slot);

}  // namespace vericache::attend
