#include "kv/packed_run.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/exact_math.h"
#include "kernels/hadamard.h"
#include "kernels/kv_layout.h"
#include "kernels/kv_pack.h"
#include "kv/i16_slots.h"

namespace vericache::kv {
namespace {

using kernels::kSubBlockSlots;
using kernels::KvFormat;

constexpr double kLog2E = 1.4426950408889634074;
constexpr float kMaxPacked = 0x1p59f;  // the packed formats' arithmetic ends at 2^60

int PaddedSlots(int n_slots) {
  return (n_slots + kSubBlockSlots - 1) / kSubBlockSlots * kSubBlockSlots;
}

// A run that is being written, laid out in one buffer.
struct RunParts {
  std::byte* keys = nullptr;
  std::byte* values = nullptr;
  float* key_scales = nullptr;
  float* value_scales = nullptr;
  float* log_weights = nullptr;  // nullptr: no weights
};

// Allocates the parts, all zero.
RunParts ShapeRun(const RunFormat& format, int capacity, bool is_weighted, AlignedBuffer& memory) {
  const size_t key_bytes = kernels::KeyBytes(format.format, format.head_dim, capacity);
  const size_t value_bytes = kernels::ValueBytes(format.format, format.head_dim, capacity);
  const size_t n_key_scales = kernels::KeyScaleCount(format.format, format.head_dim, capacity);
  const size_t n_value_scales = kernels::ValueScaleCount(format.format, capacity);
  const size_t n_weights = is_weighted ? static_cast<size_t>(capacity) : 0;
  memory = AlignedBuffer(key_bytes + value_bytes +
                         (n_key_scales + n_value_scales + n_weights) * sizeof(float));
  RunParts parts;
  parts.keys = memory.data();
  parts.values = parts.keys + key_bytes;
  parts.key_scales = reinterpret_cast<float*>(parts.values + value_bytes);
  parts.value_scales = parts.key_scales + n_key_scales;
  if (is_weighted) parts.log_weights = parts.value_scales + n_value_scales;
  return parts;
}

void PackI16(const HeadSlots& slots, const RunParts& parts) {
  RowSlot row{.keys = reinterpret_cast<int16_t*>(parts.keys),
              .values = reinterpret_cast<int16_t*>(parts.values),
              .key_steps = parts.key_scales,
              .value_steps = parts.value_scales};
  for (; row.slot < slots.Count(); ++row.slot) {
    WriteI16Slot(row, slots.head_dim, slots.At(row.slot));
  }
}

void Clamp(std::span<float> values) {
  for (float& x : values) x = std::clamp(x, -kMaxPacked, kMaxPacked);
}

// Infinities in the sums of a rotation would be NaN in their differences: clamped before as well as
// after, where a clamped vector may be larger by the root of head_dim.
void RotateClamped(std::span<float> vector) {
  Clamp(vector);
  kernels::Rotate(vector.data(), static_cast<int>(vector.size()));
}

// Groups of 64 slots, one after the other.
void PackGroups(const RunFormat& format, const HeadSlots& slots, const RunParts& parts) {
  const int head_dim = format.head_dim;
  const auto row = static_cast<size_t>(head_dim);
  std::vector<float> keys(kSubBlockSlots * row);
  std::vector<float> values(kSubBlockSlots * row);
  for (int begin = 0; begin < slots.Count(); begin += kSubBlockSlots) {
    const int n_valid = std::min(kSubBlockSlots, slots.Count() - begin);
    for (int i = 0; i < n_valid; ++i) {
      float* key = keys.data() + static_cast<size_t>(i) * row;
      float* value = values.data() + static_cast<size_t>(i) * row;
      slots.Key(begin + i, key);
      slots.Value(begin + i, value);
      if (!format.is_rotated) continue;
      RotateClamped({key, row});
      RotateClamped({value, row});
    }
    Clamp(keys);
    Clamp(values);
    const kernels::SlotGroup group{
        .format = format.format, .head_dim = head_dim, .n_valid = n_valid};
    kernels::PackKeyGroup(
        group, keys.data(), parts.keys + kernels::KeyBytes(format.format, head_dim, begin),
        parts.key_scales + kernels::KeyScaleCount(format.format, head_dim, begin));
    kernels::PackValueGroup(group, values.data(),
                            parts.values + kernels::ValueBytes(format.format, head_dim, begin),
                            parts.value_scales + kernels::ValueScaleCount(format.format, begin));
  }
}

}  // namespace

bool RunFormat::IsPossible() const {
  const int dims_per_word = format == KvFormat::kI16 ? 2 : 4 * 8 / kernels::CodeBits(format);
  return head_dim > 0 && head_dim <= kernels::kMaxHeadDim && head_dim % dims_per_word == 0;
}

kernels::SlotRun PackRun(const RunFormat& format, const HeadSlots& slots, AlignedBuffer& memory) {
  VC_CHECK(format.IsPossible(), "{} dims in {} bits", format.head_dim,
           kernels::CodeBits(format.format));
  if (slots.Count() == 0) return {};
  const int capacity = PaddedSlots(slots.Count());
  const bool is_weighted = std::any_of(slots.degrees.begin(), slots.degrees.end(),
                                       [](int32_t degree) { return degree != 1; });
  const RunParts parts = ShapeRun(format, capacity, is_weighted, memory);
  if (format.format == KvFormat::kI16) {
    PackI16(slots, parts);
  } else {
    PackGroups(format, slots, parts);
  }
  if (is_weighted) {
    std::transform(slots.degrees.begin(), slots.degrees.end(), parts.log_weights, LogWeight);
  }
  return {.keys = parts.keys,
          .values = parts.values,
          .key_scales = parts.key_scales,
          .value_scales = parts.value_scales,
          .log_weights = parts.log_weights,
          .n_slots = capacity};
}

void UnpackSlot(const RunFormat& format, const kernels::SlotRun& run, int slot,
                std::span<float> key, std::span<float> value) {
  kernels::UnpackKey(format.format, format.head_dim, run, slot, key.data());
  kernels::UnpackValue(format.format, format.head_dim, run, slot, value.data());
  if (!format.is_rotated) return;
  kernels::Rotate(key.data(), format.head_dim);  // its own inverse
  kernels::Rotate(value.data(), format.head_dim);
}

size_t SlotBytes(const RunFormat& format, int n_slots) {
  const auto n = static_cast<size_t>(n_slots);
  const auto bits = static_cast<size_t>(kernels::CodeBits(format.format));
  const size_t codes = 2 * n * static_cast<size_t>(format.head_dim) * bits / 8;
  const bool is_exact = format.format == KvFormat::kI16;
  const size_t n_key_scales = kernels::KeyScaleCount(format.format, format.head_dim,
                                                     is_exact ? n_slots : PaddedSlots(n_slots));
  return codes + (n_key_scales + kernels::ValueScaleCount(format.format, n_slots)) * sizeof(float);
}

float LogWeight(int32_t degree) {
  return static_cast<float>(ExactLog(static_cast<double>(degree)) * kLog2E);
}

}  // namespace vericache::kv
