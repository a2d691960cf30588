#include "kv/i16_slots.h"

#include <cstring>

#include "kernels/kv_layout.h"

namespace vericache::kv {
namespace {

// From one pair of key dims to the next, in elements.
constexpr size_t kKeyPairStride = 2 * kernels::kKeyGroup;

}  // namespace

I16Slot ReadI16Slot(const kernels::SlotRun& run, int head_dim, int slot, int16_t* key,
                    int16_t* value) {
  const int16_t* keys =
      reinterpret_cast<const int16_t*>(run.keys) + kernels::KeyIndex(head_dim, slot, 0);
  const int16_t* values =
      reinterpret_cast<const int16_t*>(run.values) + kernels::ValueIndex(head_dim, slot, 0);
  const auto n_dims = static_cast<size_t>(head_dim);
  for (size_t pair = 0; pair < n_dims / 2; ++pair) {
    std::memcpy(key + 2 * pair, keys + pair * kKeyPairStride, 2 * sizeof(int16_t));
  }
  for (size_t dim = 0; dim < n_dims; ++dim) value[dim] = values[2 * dim];
  return {.key = key,
          .value = value,
          .key_step = run.key_scales[slot],
          .value_step = run.value_scales[slot]};
}

void WriteI16Slot(const RowSlot& to, int head_dim, const I16Slot& slot) {
  int16_t* keys = to.keys + kernels::KeyIndex(head_dim, to.slot, 0);
  int16_t* values = to.values + kernels::ValueIndex(head_dim, to.slot, 0);
  const auto n_dims = static_cast<size_t>(head_dim);
  for (size_t pair = 0; pair < n_dims / 2; ++pair) {
    std::memcpy(keys + pair * kKeyPairStride, slot.key + 2 * pair, 2 * sizeof(int16_t));
  }
  for (size_t dim = 0; dim < n_dims; ++dim) values[2 * dim] = slot.value[dim];
  to.key_steps[to.slot] = slot.key_step;
  to.value_steps[to.slot] = slot.value_step;
}

void CopyI16Slot(const kernels::SlotRun& from, int from_slot, int head_dim, const RowSlot& to) {
  int16_t key[kernels::kMaxHeadDim];
  int16_t value[kernels::kMaxHeadDim];
  WriteI16Slot(to, head_dim, ReadI16Slot(from, head_dim, from_slot, key, value));
}

}  // namespace vericache::kv
