// Length of a stored value.
#pragma once

#include <cmath>
#include <cstdint>

#include "kv/head_slots.h"

namespace vericache::compress {

inline double ValueLength(const kv::HeadSlots& slots, int slot) {
  const int16_t* value = slots.ValueCodes(slot);
  int64_t square = 0;
  for (int dim = 0; dim < slots.head_dim; ++dim) square += value[dim] * value[dim];
  return slots.At(slot).value_step * std::sqrt(static_cast<double>(square));
}

}  // namespace vericache::compress
