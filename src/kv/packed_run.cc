#include "kv/packed_run.h"

#include <algorithm>

#include "base/check.h"
#include "base/exact_math.h"
#include "kernels/kv_layout.h"

namespace vericache::kv {
namespace {

constexpr double kLog2E = 1.4426950408889634074;

int PaddedSlots(int n_slots) {
  return (n_slots + kernels::kSubBlockSlots - 1) / kernels::kSubBlockSlots *
         kernels::kSubBlockSlots;
}

// Bytes of the parts of a run.
struct PartBytes {
  size_t codes = 0;  // of keys; values take as many
  size_t key_scales = 0;
  size_t value_scales = 0;

  size_t Sum() const { return 2 * codes + key_scales + value_scales; }
};

PartBytes PartsOf(const RunFormat& format, int n_slots) {
  const auto n = static_cast<size_t>(n_slots);
  const auto dims = static_cast<size_t>(format.head_dim);
  return {.codes = n * dims * sizeof(int16_t),
          .key_scales = n * sizeof(float),
          .value_scales = n * sizeof(float)};
}

bool IsWeighted(const HeadSlots& slots) {
  return std::any_of(slots.degrees.begin(), slots.degrees.end(), [](int32_t d) { return d != 1; });
}

void PackI16(const HeadSlots& slots, RowSlot row) {
  for (row.slot = 0; row.slot < slots.Count(); ++row.slot) {
    WriteI16Slot(row, slots.head_dim, slots.At(row.slot));
  }
}

}  // namespace

kernels::SlotRun PackRun(const RunFormat& format, const HeadSlots& slots, AlignedBuffer& memory) {
  VC_CHECK(format.format == kernels::KvFormat::kI16, "format {}", static_cast<int>(format.format));
  if (slots.Count() == 0) return {};
  const int capacity = PaddedSlots(slots.Count());
  const PartBytes parts = PartsOf(format, capacity);
  const bool is_weighted = IsWeighted(slots);
  const size_t weight_bytes = is_weighted ? static_cast<size_t>(capacity) * sizeof(float) : 0;
  memory = AlignedBuffer(parts.Sum() + weight_bytes);

  std::byte* keys = memory.data();
  std::byte* values = keys + parts.codes;
  auto* key_scales = reinterpret_cast<float*>(values + parts.codes);
  auto* value_scales = key_scales + parts.key_scales / sizeof(float);
  auto* log_weights = value_scales + parts.value_scales / sizeof(float);
  PackI16(slots, {.keys = reinterpret_cast<int16_t*>(keys),
                  .values = reinterpret_cast<int16_t*>(values),
                  .key_steps = key_scales,
                  .value_steps = value_scales});
  if (is_weighted) {
    std::transform(slots.degrees.begin(), slots.degrees.end(), log_weights, LogWeight);
  }
  return {.keys = keys,
          .values = values,
          .key_scales = key_scales,
          .value_scales = value_scales,
          .log_weights = is_weighted ? log_weights : nullptr,
          .n_slots = capacity};
}

void UnpackSlot(const RunFormat& format, const kernels::SlotRun& run, int slot, float* key,
                float* value) {
  (void)run, (void)key, (void)value;
  VC_CHECK(format.format != kernels::KvFormat::kI16, "slot {}", slot);
}

size_t SlotBytes(const RunFormat& format, int n_slots) { return PartsOf(format, n_slots).Sum(); }

float LogWeight(int32_t degree) {
  return static_cast<float>(ExactLog(static_cast<double>(degree)) * kLog2E);
}

}  // namespace vericache::kv
