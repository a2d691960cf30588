#include "kernels/kv_pack.h"

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

// round_ties_even((x - min) / scale), clamped; 0 where all values are the same.
int CodeOf(KvFormat format, const CodeRange& range, float x) {
  if (!(range.scale > 0.0f)) return 0;
  const float t = (x - range.min) / range.scale;
  const auto levels = static_cast<float>((1 << CodeBits(format)) - 1);
  const float clamped = t < levels ? t : levels;
  return static_cast<int>(FloatBits(clamped + kRoundBias) & 0xffu);
}

void StoreCode(KvFormat format, CodePlace place, int code, std::byte* out) {
  if (format == KvFormat::kQ8) {
    out[place.byte] = static_cast<std::byte>(code ^ 0x80);  // code - 128 as i8
  } else {
    out[place.byte] |= static_cast<std::byte>(code << place.shift);
  }
}

}  // namespace

void PackKeyGroup(const SlotGroup& group, const float* keys, std::byte* out, float* scales) {
  VC_DCHECK(group.n_valid > 0 && group.n_valid <= kSubBlockSlots, "n_valid {}", group.n_valid);
  const int head_dim = group.head_dim;
  std::memset(out, 0, KeyBytes(group.format, head_dim, kSubBlockSlots));
  CodeRange ranges[kMaxHeadDim];
  for (int d = 0; d < head_dim; ++d) {
    float min = keys[d];
    float max = keys[d];
    for (int slot = 1; slot < group.n_valid; ++slot) {
      const float x = keys[slot * head_dim + d];
      min = x < min ? x : min;
      max = x > max ? x : max;
    }
    ranges[d] = RangeOf(group.format, min, max);
    scales[KeyScaleIndex(head_dim, 0, d)] = ranges[d].scale;
    scales[KeyMidIndex(head_dim, 0, d)] = ranges[d].mid;
  }
  for (int slot = 0; slot < group.n_valid; ++slot) {
    for (int d = 0; d < head_dim; ++d) {
      StoreCode(group.format, KeyPlace(group.format, head_dim, slot, d),
                CodeOf(group.format, ranges[d], keys[slot * head_dim + d]), out);
    }
  }
}

void PackValueGroup(const SlotGroup& group, const float* values, std::byte* out, float* scales) {
  VC_DCHECK(group.n_valid > 0 && group.n_valid <= kSubBlockSlots, "n_valid {}", group.n_valid);
  const int head_dim = group.head_dim;
  std::memset(out, 0, ValueBytes(group.format, head_dim, kSubBlockSlots));
  std::memset(scales, 0, ValueScaleCount(group.format, kSubBlockSlots) * sizeof(float));
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
    for (int d = 0; d < head_dim; ++d) {
      StoreCode(group.format, ValuePlace(group.format, head_dim, slot, d),
                CodeOf(group.format, range, x[d]), out);
    }
  }
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
