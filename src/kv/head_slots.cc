#include "kv/head_slots.h"

#include "base/check.h"

namespace vericache::kv {
namespace {

void Decode(const int16_t* codes, float step, int head_dim, float* out) {
  for (int dim = 0; dim < head_dim; ++dim) out[dim] = static_cast<float>(codes[dim]) * step;
}

}  // namespace

void HeadSlots::Reserve(int n_slots) {
  const auto n = static_cast<size_t>(n_slots);
  key_codes.reserve(CodesAt(n_slots));
  value_codes.reserve(CodesAt(n_slots));
  key_steps.reserve(n);
  value_steps.reserve(n);
  degrees.reserve(n);
  positions.reserve(n);
}

void HeadSlots::Clear() {
  key_codes.clear();
  value_codes.clear();
  key_steps.clear();
  value_steps.clear();
  degrees.clear();
  positions.clear();
}

I16Slot HeadSlots::At(int slot) const {
  const auto i = static_cast<size_t>(slot);
  return {.key = KeyCodes(slot),
          .value = ValueCodes(slot),
          .key_step = key_steps[i],
          .value_step = value_steps[i]};
}

void HeadSlots::Key(int slot, float* out) const {
  Decode(KeyCodes(slot), key_steps[static_cast<size_t>(slot)], head_dim, out);
}

void HeadSlots::Value(int slot, float* out) const {
  Decode(ValueCodes(slot), value_steps[static_cast<size_t>(slot)], head_dim, out);
}

void HeadSlots::Append(const I16Slot& slot, int32_t degree, Position position) {
  key_codes.insert(key_codes.end(), slot.key, slot.key + head_dim);
  value_codes.insert(value_codes.end(), slot.value, slot.value + head_dim);
  key_steps.push_back(slot.key_step);
  value_steps.push_back(slot.value_step);
  degrees.push_back(degree);
  positions.push_back(position);
}

void HeadSlots::Encode(const kernels::KernelTable& kernels, const FloatSlot& slot, int32_t degree,
                       Position position) {
  VC_DCHECK(head_dim <= kernels::kMaxHeadDim, "head_dim = {}", head_dim);
  int16_t key[kernels::kMaxHeadDim];
  int16_t value[kernels::kMaxHeadDim];
  bool is_finite = true;  // a draft may lose what is not: only the truth must report it
  const float key_step = kernels.encode_key(slot.key, head_dim, key, &is_finite);
  const float value_step = kernels.encode_value(slot.value, head_dim, value, &is_finite);
  Append({.key = key, .value = value, .key_step = key_step, .value_step = value_step}, degree,
         position);
}

}  // namespace vericache::kv
