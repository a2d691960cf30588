// Lengths of stored vectors, from their codes.
#pragma once

#include <cmath>
#include <cstdint>

#include "kv/head_slots.h"

namespace vericache::compress {

// Of the codes: the length in steps. Exact up to the root.
inline double CodesLength(const int16_t* codes, int head_dim) {
  int64_t square = 0;
  for (int dim = 0; dim < head_dim; ++dim) square += codes[dim] * codes[dim];
  return std::sqrt(static_cast<double>(square));
}

inline double KeyLength(const kv::HeadSlots& slots, int slot) {
  return slots.At(slot).key_step * CodesLength(slots.KeyCodes(slot), slots.head_dim);
}

inline double ValueLength(const kv::HeadSlots& slots, int slot) {
  return slots.At(slot).value_step * CodesLength(slots.ValueCodes(slot), slots.head_dim);
}

// What makes the codes of a key a direction, which does not depend on the step: 1 / |codes|, 0 for
// a zero key.
inline double InverseKeyLength(const kv::HeadSlots& slots, int slot) {
  const double length = CodesLength(slots.KeyCodes(slot), slots.head_dim);
  return length > 0 ? 1.0 / length : 0.0;
}

}  // namespace vericache::compress
