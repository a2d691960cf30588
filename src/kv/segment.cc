#include "kv/segment.h"

#include <algorithm>

namespace vericache::kv {

int Segment::CountBefore(Position end) const {
  if (positions != nullptr) {
    return static_cast<int>(std::lower_bound(positions, positions + n_slots, end) - positions);
  }
  return std::clamp(end - first_position, 0, n_slots);
}

kernels::SlotRun RunOf(const BlockLayout& layout, const std::byte* block, int head) {
  return {.keys = block + layout.KeysAt(head),
          .values = block + layout.ValuesAt(head),
          .key_scales = reinterpret_cast<const float*>(block + layout.KeyStepsAt(head)),
          .value_scales = reinterpret_cast<const float*>(block + layout.ValueStepsAt(head)),
          .n_slots = layout.SlotCount()};
}

RowSlot RowOf(const BlockLayout& layout, std::byte* block, int head, int slot) {
  return {.keys = reinterpret_cast<int16_t*>(block + layout.KeysAt(head)),
          .values = reinterpret_cast<int16_t*>(block + layout.ValuesAt(head)),
          .key_steps = reinterpret_cast<float*>(block + layout.KeyStepsAt(head)),
          .value_steps = reinterpret_cast<float*>(block + layout.ValueStepsAt(head)),
          .slot = slot};
}

}  // namespace vericache::kv
