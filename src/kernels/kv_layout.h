// Offsets inside a run of KV slots of one head: the tile layouts the attention kernels read.
// Everything above one run (blocks, heads, layers) is kv/geometry.h.
//
// kI16  keys   [n/16][head_dim/2][16 slots][2 dims] i16: one 32-bit pair feeds vpdpwssd / vpmaddwd.
//       values [n/32][16][head_dim][2] i16: pair = slots (i, i+16) of a group of 32.
// Source: docs/numerics.md section 3.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/types.h"

namespace vericache::kernels {

inline constexpr int kKeyGroup = 16;
inline constexpr int kValueGroup = 32;

// Index of (slot, dim) in the codes of a run, in elements.
constexpr size_t KeyIndex(int head_dim, int slot, int dim) {
  return static_cast<size_t>(slot / kKeyGroup) * kKeyGroup * static_cast<size_t>(head_dim) +
         static_cast<size_t>(dim / 2) * (2 * kKeyGroup) +
         static_cast<size_t>(slot % kKeyGroup) * 2 + static_cast<size_t>(dim % 2);
}
constexpr size_t ValueIndex(int head_dim, int slot, int dim) {
  return static_cast<size_t>(slot / kValueGroup) * kValueGroup * static_cast<size_t>(head_dim) +
         static_cast<size_t>(slot % 16) * static_cast<size_t>(head_dim) * 2 +
         static_cast<size_t>(dim) * 2 + static_cast<size_t>(slot / 16 % 2);
}

}  // namespace vericache::kernels
