// Where the codes and scales of an activation tile lie: one writer (quantize), one reader (matmul).
//
// codes  of a tile: [k/32][tile rows][32] i8. scales of a tile: [k/32][planes][tile rows], 4 bytes
// each. The integer planes are start values of the dot: unsigned weights u = w + offset give sum
// u*q - offset * sum q. Internal linkage throughout, for the reason given in numerics.h.
#pragma once

#include "kernels/types.h"

namespace vericache::kernels {

enum ScalePlane : int {
  kPlaneStep,         // d, f32
  kPlaneSum,          // s = d * float(sum q), f32
  kPlaneStart128,     // -128 * sum q, i32: Q8_0
  kPlaneStart16,      // -16 * sum q: Q5_0
  kPlaneStart8,       // -8 * sum q: Q4_0
  kPlaneStart32Low,   // -32 * sum of the first 16 codes: Q6_K
  kPlaneStart32High,  // -32 * sum of the last 16
  kScalePlanes,
};

[[gnu::always_inline]] static inline int ActBlockCount(int k) {
  return (k + kActBlock - 1) / kActBlock;
}

// One tile: where it starts and how many rows it has.
struct ActTile {
  int first_row;
  int n_rows;
  int8_t* codes;
  float* scales;

  // Codes of (block, row): 32 of them.
  [[gnu::always_inline]] int8_t* Codes(int block, int row) const {
    return codes +
           (static_cast<size_t>(block) * static_cast<size_t>(n_rows) + static_cast<size_t>(row)) *
               kActBlock;
  }
  // Plane 0 of (block, row); plane p of it is p * n_rows further on.
  [[gnu::always_inline]] float* Scales(int block, int row) const {
    return scales + static_cast<size_t>(block) * static_cast<size_t>(kScalePlanes * n_rows) +
           static_cast<size_t>(row);
  }
};

// Stores the planes of one block of one row: its step d and the sums of its first and last 16
// codes.
[[gnu::always_inline]] static inline void StoreScales(float* planes, int n_rows, float step,
                                                      int sum_low, int sum_high) {
  const int sum = sum_low + sum_high;
  const auto put = [&](ScalePlane plane, float value) { planes[plane * n_rows] = value; };
  const auto put_int = [&](ScalePlane plane, int value) {
    put(plane, __builtin_bit_cast(float, value));
  };
  put(kPlaneStep, step);
  put(kPlaneSum, step * static_cast<float>(sum));
  put_int(kPlaneStart128, -128 * sum);
  put_int(kPlaneStart16, -16 * sum);
  put_int(kPlaneStart8, -8 * sum);
  put_int(kPlaneStart32Low, -32 * sum_low);
  put_int(kPlaneStart32High, -32 * sum_high);
}

// Requires: acts shaped by ShapeActivations. A const Activations is only read by whoever asks for
// its tiles.
[[gnu::always_inline]] static inline ActTile TileOf(const Activations& acts, int tile) {
  const int first = acts.TileBegin(tile);
  const size_t n_blocks = static_cast<size_t>(ActBlockCount(acts.k));
  const size_t row = static_cast<size_t>(first);
  auto* codes = const_cast<std::byte*>(acts.codes.data());
  auto* scales = const_cast<std::byte*>(acts.scales.data());
  return {.first_row = first,
          .n_rows = acts.TileBegin(tile + 1) - first,
          .codes = reinterpret_cast<int8_t*>(codes) + row * n_blocks * kActBlock,
          .scales = reinterpret_cast<float*>(scales) + row * n_blocks * kScalePlanes};
}

}  // namespace vericache::kernels
