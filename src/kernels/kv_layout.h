// Offsets inside a run of KV slots of one head: the tile layouts the attention kernels read.
// Everything above one run (blocks, heads, layers) is kv/geometry.h. docs/kv_format.md has
// pictures.
//
// kI16  keys   [n/16][head_dim/2][16 slots][2 dims] i16: one 32-bit pair feeds vpdpwssd / vpmaddwd.
//       values [n/32][16][head_dim][2] i16: pair = slots (i, i+16) of a group of 32.
// kQ8   the same two layouts with bytes: code - 128 as i8.
// kQ4   keys   [n/16][head_dim/8][16 slots][4 dims] bytes: dims 4..7 in the high nibble.
//       values [n/8][head_dim][4 slots] bytes: slots 4..7 in the high nibble.
// kQ2   keys   [n/16][head_dim/16][16 slots][4 dims] bytes, values [n/16][head_dim][4 slots] bytes:
//       dims (slots) 4i..4i+3 in bits 2i and 2i+1.
// One 32-bit word of a lane feeds vpdpbusd / vpmaddubsw with 4 products per plane of bits.
// Source: docs/numerics.md section 3, docs/kv_format.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/types.h"

namespace vericache::kernels {

inline constexpr int kKeyGroup = 16;
inline constexpr int kValueGroup = 32;

// Index of (slot, dim) in the codes of a run, in elements: kI16 and kQ8.
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

constexpr int CodeBits(KvFormat format) {
  switch (format) {
    case KvFormat::kI16:
      return 16;
    case KvFormat::kQ8:
      return 8;
    case KvFormat::kQ4:
      return 4;
    case KvFormat::kQ2:
      return 2;
  }
  return 0;
}

// Where the code of (slot, dim) starts in the bytes of a run.
struct CodePlace {
  size_t byte;
  int shift;  // bits below the code in that byte
};

constexpr CodePlace KeyPlace(KvFormat format, int head_dim, int slot, int dim) {
  const int bits = CodeBits(format);
  if (bits >= 8) return {KeyIndex(head_dim, slot, dim) * static_cast<size_t>(bits / 8), 0};
  const int planes = 8 / bits;
  const auto word =
      static_cast<size_t>(slot / kKeyGroup * (head_dim / (4 * planes)) + dim / (4 * planes)) *
          kKeyGroup +
      static_cast<size_t>(slot % kKeyGroup);
  return {4 * word + static_cast<size_t>(dim % 4), dim / 4 % planes * bits};
}
constexpr CodePlace ValuePlace(KvFormat format, int head_dim, int slot, int dim) {
  const int bits = CodeBits(format);
  if (bits >= 8) return {ValueIndex(head_dim, slot, dim) * static_cast<size_t>(bits / 8), 0};
  const int planes = 8 / bits;
  const auto word = static_cast<size_t>(slot / (4 * planes)) * static_cast<size_t>(head_dim) +
                    static_cast<size_t>(dim);
  return {4 * word + static_cast<size_t>(slot % 4), slot / 4 % planes * bits};
}

// Sizes of a run. Requires: n_slots is a multiple of 64.
constexpr size_t KeyBytes(KvFormat format, int head_dim, int n_slots) {
  return static_cast<size_t>(n_slots) * static_cast<size_t>(head_dim) *
         static_cast<size_t>(CodeBits(format)) / 8;
}
constexpr size_t ValueBytes(KvFormat format, int head_dim, int n_slots) {
  return KeyBytes(format, head_dim, n_slots);
}
// Floats, not bytes.
constexpr size_t KeyScaleCount(KvFormat format, int head_dim, int n_slots) {
  if (format == KvFormat::kI16) return static_cast<size_t>(n_slots);
  return static_cast<size_t>(n_slots / kSubBlockSlots) * 2 * static_cast<size_t>(head_dim);
}
constexpr size_t ValueScaleCount(KvFormat format, int n_slots) {
  return static_cast<size_t>(n_slots) * (format == KvFormat::kI16 ? 1 : 2);
}

// ---- packed formats (kQ8, kQ4, kQ2)
// -------------------------------------------------------------- A code c in [0, 2^bits) stands for
// fma(scale, c - center, mid). Keys:   scale and mid per channel of a group of 64 slots, key_scales
// [n/64][2][head_dim]. Values: scale and mid per slot, value_scales [n/64][2][64].

constexpr int CodeCenter(KvFormat format) { return 1 << (CodeBits(format) - 1); }
// The code at a place minus the center: what the exact dots multiply.
constexpr int CenteredCode(KvFormat format, CodePlace place, const std::byte* codes) {
  const auto byte = static_cast<uint8_t>(codes[place.byte]);
  if (format == KvFormat::kQ8) return static_cast<int8_t>(byte);
  return (byte >> place.shift & ((1 << CodeBits(format)) - 1)) - CodeCenter(format);
}
constexpr size_t KeyScaleIndex(int head_dim, int slot, int dim) {
  return static_cast<size_t>(slot / kSubBlockSlots) * 2 * static_cast<size_t>(head_dim) +
         static_cast<size_t>(dim);
}
constexpr size_t KeyMidIndex(int head_dim, int slot, int dim) {
  return KeyScaleIndex(head_dim, slot, dim) + static_cast<size_t>(head_dim);
}
constexpr size_t ValueScaleIndex(int slot) {
  return static_cast<size_t>(slot / kSubBlockSlots) * 2 * kSubBlockSlots +
         static_cast<size_t>(slot % kSubBlockSlots);
}
constexpr size_t ValueMidIndex(int slot) { return ValueScaleIndex(slot) + kSubBlockSlots; }

}  // namespace vericache::kernels
