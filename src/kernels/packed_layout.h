// How a panel of 16 output columns lies in memory, per weight type: internal to this room.
//
// Blocks are 32 inputs long, as activations are. A panel is read front to back:
//   kF32, kF16, kBf16  [k][16]
//   kQ8_0, kQ4_0 ...   scales [k/32][planes][16] f16, padded to 64 bytes, then codes [k/32]
//   kQ4K, kQ5K         per 256: d[16] dmin[16] f16, sc[8][16] mn[8][16] u8, codes [8]
//   kQ6K               per 256: d[16] f16, 32 unused bytes, sc[16][16] i8, codes [8]
// Codes of a block are unsigned, in lines of 64 bytes = [16 columns][4 inputs]; group g is inputs
// 4g to 4g + 3:
//   8 bits  8 lines, line g = group g
//   4 bits  4 lines, line p = group p | group p + 4 << 4
//   5 bits  as 4 bits, then 1 line of fifth bits: bit g of a byte belongs to group g
//   6 bits  as 4 bits, then 2 lines of upper bits: line h holds groups 4h to 4h + 3 in bits 0-1,
//   2-3, 4-5, 6-7
#pragma once

#include "kernels/types.h"

namespace vericache::kernels {

struct PackedLayout {
  int gguf_block_length;  // weights
  int gguf_block_bytes;
  int code_bits;     // 4, 5, 6, 8; 0: a float type
  int code_offset;   // weight = scale * (code - offset) + min
  int scale_planes;  // f16 per block and column: d, or d and m; 0: scales of a super-block
  bool has_min;
  bool has_halves;  // one scale per 16 inputs
};

static constexpr PackedLayout LayoutOf(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return {1, 4, 0, 0, 0, false, false};
    case WeightType::kF16:
      return {1, 2, 0, 0, 0, false, false};
    case WeightType::kBf16:
      return {1, 2, 0, 0, 0, false, false};
    case WeightType::kQ8_0:
      return {32, 34, 8, 128, 1, false, false};
    case WeightType::kQ4_0:
      return {32, 18, 4, 8, 1, false, false};
    case WeightType::kQ4_1:
      return {32, 20, 4, 0, 2, true, false};
    case WeightType::kQ5_0:
      return {32, 22, 5, 16, 1, false, false};
    case WeightType::kQ5_1:
      return {32, 24, 5, 0, 2, true, false};
    case WeightType::kQ4K:
      return {256, 144, 4, 0, 0, true, false};
    case WeightType::kQ5K:
      return {256, 176, 5, 0, 0, true, false};
    case WeightType::kQ6K:
      return {256, 210, 6, 32, 0, false, true};
  }
  return {};
}

inline constexpr int kLineBytes = 64;           // 4 inputs of 16 columns, 8 bits each
inline constexpr int kPlaneBytes = 32;          // 16 f16
inline constexpr int kSuperBlocks = 8;          // blocks of a super-block
inline constexpr int kSuperSubScales = 64;      // sc of a super-block, after d and dmin
inline constexpr int kSuperSubMins = 64 + 128;  // mn
inline constexpr int kSuperHeader = 64 + 256;   // then the codes

static constexpr size_t CodeBytes(WeightType type) {
  return static_cast<size_t>(LayoutOf(type).code_bits) * kLineBytes;
}
static constexpr bool IsSuper(WeightType type) { return LayoutOf(type).gguf_block_length == 256; }
static constexpr size_t SuperBytes(WeightType type) {
  return kSuperHeader + kSuperBlocks * CodeBytes(type);
}

// Offset of a super-block's header in its panel.
static constexpr size_t SuperOffset(WeightType type, int block) {
  return static_cast<size_t>(block / kSuperBlocks) * SuperBytes(type);
}
// Offset of a block's codes in its panel.
static constexpr size_t CodeOffset(WeightType type, size_t quant_offset, int block) {
  if (IsSuper(type)) {
    return SuperOffset(type, block) + kSuperHeader +
           static_cast<size_t>(block % kSuperBlocks) * CodeBytes(type);
  }
  return quant_offset + static_cast<size_t>(block) * CodeBytes(type);
}
// Offset of the f16 scales of a block whose type has no super-blocks.
static constexpr size_t ScaleOffset(WeightType type, int block) {
  return static_cast<size_t>(block) * static_cast<size_t>(LayoutOf(type).scale_planes) *
         kPlaneBytes;
}

// One column of one block, as the definition sees it: integer weights (offset removed), dw of
// either half, mw.
struct WeightBlock {
  int16_t weights[kActBlock];
  float scale[2];
  float min;
};
WeightBlock UnpackBlock(const PackedMatrix& w, int column, int block);

}  // namespace vericache::kernels
