#include "attend/append.h"

#include <cstring>

#include "kernels/kv_layout.h"

namespace vericache::attend {

bool AppendKey(const kernels::KernelTable& kernels, const float* key, int head_dim,
               const kv::RowSlot& slot) {
  alignas(64) int16_t codes[kernels::kMaxHeadDim];
  bool is_finite = true;
  slot.key_steps[slot.slot] = kernels.encode_key(key, head_dim, codes, &is_finite);
  // Two dimensions at a time: a pair is one 32-bit word of the tile.
  for (int d = 0; d < head_dim; d += 2) {
    std::memcpy(slot.keys + kernels::KeyIndex(head_dim, slot.slot, d), codes + d,
                2 * sizeof(int16_t));
  }
  return is_finite;
}

bool AppendValue(const kernels::KernelTable& kernels, const float* value, int head_dim,
                 const kv::RowSlot& slot) {
  alignas(64) int16_t codes[kernels::kMaxHeadDim];
  bool is_finite = true;
  slot.value_steps[slot.slot] = kernels.encode_value(value, head_dim, codes, &is_finite);
  for (int d = 0; d < head_dim; ++d) {
    slot.values[kernels::ValueIndex(head_dim, slot.slot, d)] = codes[d];
  }
  return is_finite;
}

}  // namespace vericache::attend
