#include "kernels/kv_pack.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/kv_layout.h"
#include "kernels/numerics.h"

namespace vericache::kernels {
namespace {

// scale = (max - min) / (2^b - 1), mid = the value of the center code.
struct CodeRange {
  float min = 0.0f;
  float scale = 0.0f;
  float mid = 0.0f;
};

CodeRange RangeOf(KvFormat format, float min, float max) {
  const auto levels = static_cast<float>((1 << CodeBits(format)) - 1);
  CodeRange range{.min = min, .scale = (max - min) / levels};
  range.mid = Fma(range.scale, static_cast<float>(CodeCenter(format)), min);
  return range;
}

// round_ties_even((x - min) / scale), clamped; 0 where all values are the same. Without a branch,
// so that loops over it vectorise.
inline uint8_t CodeOf(float levels, float min, float scale, float x) {
  const float t = (x - min) / scale;
  const float clamped = t < levels ? t : levels;
  const uint32_t kept = scale > 0.0f ? 0xffu : 0u;
  return static_cast<uint8_t>(FloatBits(clamped + kRoundBias) & kept);
}

// Codes of one group before they are laid out: [64 slots][head_dim].
using GroupCodes = uint8_t[kSubBlockSlots][kMaxHeadDim];

// A byte of kQ4 and kQ2 holds the codes of 8 / bits places that lie `stride` apart.
template <int kBits>
inline std::byte PackByte(const uint8_t* codes, size_t stride) {
  unsigned byte = 0;
  for (size_t plane = 0; plane < 8 / kBits; ++plane) {
    byte |= static_cast<unsigned>(codes[plane * stride]) << (plane * kBits);
  }
  return static_cast<std::byte>(byte);
}

// Planes of a key byte are 4 dims apart, those of a value byte 4 slots.
template <int kBits>
void StoreKeys(const SlotGroup& group, const GroupCodes& codes, std::byte* out) {
  constexpr int kDimsPerWord = 4 * 8 / kBits;
  for (int slot = 0; slot < group.n_valid; ++slot) {
    for (int dim = 0; dim < group.head_dim; dim += kDimsPerWord) {
      std::byte* word = out + KeyPlace(group.format, group.head_dim, slot, dim).byte;
      for (int j = 0; j < 4; ++j) word[j] = PackByte<kBits>(&codes[slot][dim + j], 4);
    }
  }
}

template <int kBits>
void StoreValues(const SlotGroup& group, const GroupCodes& codes, std::byte* out) {
  constexpr int kSlotsPerWord = 4 * 8 / kBits;
  for (int slot = 0; slot < group.n_valid; slot += kSlotsPerWord) {
    std::byte* words = out + ValuePlace(group.format, group.head_dim, slot, 0).byte;
    for (int dim = 0; dim < group.head_dim; ++dim) {
      for (int j = 0; j < 4; ++j) {
        words[4 * dim + j] = PackByte<kBits>(&codes[slot + j][dim], 4 * size_t{kMaxHeadDim});
      }
    }
  }
}

// code - 128 as i8: pairs of dims of a key, pairs of slots (i, i + 16) of a value.
void StoreKeys8(const SlotGroup& group, const GroupCodes& codes, std::byte* out) {
  for (int slot = 0; slot < group.n_valid; ++slot) {
    for (int dim = 0; dim < group.head_dim; dim += 2) {
      std::byte* pair = out + KeyIndex(group.head_dim, slot, dim);
      for (int j = 0; j < 2; ++j) pair[j] = static_cast<std::byte>(codes[slot][dim + j] ^ 0x80);
    }
  }
}

void StoreValues8(const SlotGroup& group, const GroupCodes& codes, std::byte* out) {
  for (int slot = 0; slot < group.n_valid; ++slot) {
    std::byte* row = out + ValueIndex(group.head_dim, slot, 0);
    for (int dim = 0; dim < group.head_dim; ++dim) {
      row[2 * dim] = static_cast<std::byte>(codes[slot][dim] ^ 0x80);
    }
  }
}

}  // namespace

void PackKeyGroup(const SlotGroup& group, const float* keys, std::byte* out, float* scales) {
  VC_DCHECK(group.n_valid > 0 && group.n_valid <= kSubBlockSlots, "n_valid {}", group.n_valid);
  const int head_dim = group.head_dim;
  std::memset(out, 0, KeyBytes(group.format, head_dim, kSubBlockSlots));
  float min[kMaxHeadDim];
  float max[kMaxHeadDim];
  float scale[kMaxHeadDim];
  std::copy_n(keys, head_dim, min);
  std::copy_n(keys, head_dim, max);
  for (int slot = 1; slot < group.n_valid; ++slot) {
    const float* x = keys + static_cast<ptrdiff_t>(slot) * head_dim;
    for (int d = 0; d < head_dim; ++d) {
      min[d] = x[d] < min[d] ? x[d] : min[d];
      max[d] = x[d] > max[d] ? x[d] : max[d];
    }
  }
  for (int d = 0; d < head_dim; ++d) {
    const CodeRange range = RangeOf(group.format, min[d], max[d]);
    scale[d] = range.scale;
    scales[KeyScaleIndex(head_dim, 0, d)] = range.scale;
    scales[KeyMidIndex(head_dim, 0, d)] = range.mid;
  }
  const auto levels = static_cast<float>((1 << CodeBits(group.format)) - 1);
  GroupCodes codes;
  for (int slot = 0; slot < group.n_valid; ++slot) {
    const float* x = keys + static_cast<ptrdiff_t>(slot) * head_dim;
    for (int d = 0; d < head_dim; ++d) codes[slot][d] = CodeOf(levels, min[d], scale[d], x[d]);
  }
  if (group.format == KvFormat::kQ8) return StoreKeys8(group, codes, out);
  return group.format == KvFormat::kQ4 ? StoreKeys<4>(group, codes, out)
                                       : StoreKeys<2>(group, codes, out);
}

void PackValueGroup(const SlotGroup& group, const float* values, std::byte* out, float* scales) {
  VC_DCHECK(group.n_valid > 0 && group.n_valid <= kSubBlockSlots, "n_valid {}", group.n_valid);
  const int head_dim = group.head_dim;
  std::memset(out, 0, ValueBytes(group.format, head_dim, kSubBlockSlots));
  std::memset(scales, 0, ValueScaleCount(group.format, kSubBlockSlots) * sizeof(float));
  const auto levels = static_cast<float>((1 << CodeBits(group.format)) - 1);
  GroupCodes codes;
  for (int slot = 0; slot < group.n_valid; ++slot) {
    const float* x = values + static_cast<ptrdiff_t>(slot) * head_dim;
    float min = x[0];
    float max = x[0];
    for (int d = 1; d < head_dim; ++d) {
      min = x[d] < min ? x[d] : min;
      max = x[d] > max ? x[d] : max;
    }
    const CodeRange range = RangeOf(group.format, min, max);
    scales[ValueScaleIndex(slot)] = range.scale;
    scales[ValueMidIndex(slot)] = range.mid;
    for (int d = 0; d < head_dim; ++d)
      codes[slot][d] = CodeOf(levels, range.min, range.scale, x[d]);
  }
  // A word of values spans several slots: those that do not exist are 0.
  for (int slot = group.n_valid; slot < kSubBlockSlots; ++slot) {
    std::memset(codes[slot], 0, static_cast<size_t>(head_dim));
  }
  if (group.format == KvFormat::kQ8) return StoreValues8(group, codes, out);
  return group.format == KvFormat::kQ4 ? StoreValues<4>(group, codes, out)
                                       : StoreValues<2>(group, codes, out);
}

void UnpackKey(KvFormat format, int head_dim, const SlotRun& run, int slot, float* out) {
  for (int d = 0; d < head_dim; ++d) {
    out[d] =
        Fma(run.key_scales[KeyScaleIndex(head_dim, slot, d)],
            static_cast<float>(CenteredCode(format, KeyPlace(format, head_dim, slot, d), run.keys)),
            run.key_scales[KeyMidIndex(head_dim, slot, d)]);
  }
}

void UnpackValue(KvFormat format, int head_dim, const SlotRun& run, int slot, float* out) {
  const float scale = run.value_scales[ValueScaleIndex(slot)];
  const float mid = run.value_scales[ValueMidIndex(slot)];
  for (int d = 0; d < head_dim; ++d) {
    out[d] = Fma(
        scale,
        static_cast<float>(CenteredCode(format, ValuePlace(format, head_dim, slot, d), run.values)),
        mid);
  }
}

}  // namespace vericache::kernels
