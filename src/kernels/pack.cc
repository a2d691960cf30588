// GGUF rows into panels and back. Layout: packed_layout.h.

#include <cstring>

#include "base/check.h"
#include "base/f16.h"
#include "kernels/kernels.h"
#include "kernels/packed_layout.h"

namespace vericache::kernels {
namespace {

constexpr uint32_t kLowNibbles = 0x0f0f0f0f;

// A block of 32 weights as GGUF stores it: codes and raw scales.
struct GgufBlock {
  uint8_t codes[kActBlock];
  const std::byte* d = nullptr;  // f16
  const std::byte* m = nullptr;  // f16: m or dmin
  uint8_t sub_scale[2] = {};     // super-blocks: sc (of either half; Q6_K: signed), or sc and mn
};

uint8_t Byte(const std::byte* p) { return std::to_integer<uint8_t>(*p); }

uint32_t Load32(const void* p) {
  uint32_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}
void Store32(void* p, uint32_t word) { std::memcpy(p, &word, sizeof word); }

float LoadF16(const std::byte* p) {
  uint16_t half;
  std::memcpy(&half, p, sizeof half);
  return F16ToF32(half);
}

// ---- reading GGUF -------------------------------------------------------------------------------

void ReadQ8_0(const std::byte* block, GgufBlock& out) {
  out.d = block;
  for (int i = 0; i < kActBlock; ++i)
    out.codes[i] = static_cast<uint8_t>(Byte(block + 2 + i) + 128);
}

// Q4_0, Q4_1, Q5_0, Q5_1: d, [m], [fifth bits], nibbles (inputs i and i + 16 in one byte).
void ReadQ4Or5(const PackedLayout& layout, const std::byte* block, GgufBlock& out) {
  out.d = block;
  const std::byte* next = block + 2;
  if (layout.has_min) {
    out.m = next;
    next += 2;
  }
  uint32_t fifth_bits = 0;
  if (layout.code_bits == 5) {
    fifth_bits = Load32(next);
    next += 4;
  }
  for (int i = 0; i < 16; ++i) {
    const uint32_t low = (Byte(next + i) & 15u) | (fifth_bits >> i & 1u) << 4;
    const uint32_t high = (Byte(next + i) >> 4) | (fifth_bits >> (i + 16) & 1u) << 4;
    out.codes[i] = static_cast<uint8_t>(low);
    out.codes[i + 16] = static_cast<uint8_t>(high);
  }
}

// The 6-bit scale and minimum of block j in the 12 bytes of a K super-block.
void ReadSubScales(const std::byte* packed, int j, uint8_t (&out)[2]) {
  const auto at = [&](int i) { return static_cast<uint32_t>(Byte(packed + i)); };
  if (j < 4) {
    out[0] = static_cast<uint8_t>(at(j) & 63u);
    out[1] = static_cast<uint8_t>(at(j + 4) & 63u);
  } else {
    out[0] = static_cast<uint8_t>((at(j + 4) & 15u) | (at(j - 4) >> 6) << 4);
    out[1] = static_cast<uint8_t>((at(j + 4) >> 4) | (at(j) >> 6) << 4);
  }
}

// Q4_K, Q5_K: d, dmin, 12 bytes of scales, [32 bytes of fifth bits], nibbles (blocks 2i and 2i + 1
// in 32 bytes).
void ReadQ4KOrQ5K(const PackedLayout& layout, const std::byte* super, int j, GgufBlock& out) {
  out.d = super;
  out.m = super + 2;
  ReadSubScales(super + 4, j, out.sub_scale);
  const bool has_fifth = layout.code_bits == 5;
  const std::byte* fifth = super + 16;
  const std::byte* nibbles = super + (has_fifth ? 48 : 16) + j / 2 * 32;
  const int shift = j % 2 * 4;
  for (int i = 0; i < kActBlock; ++i) {
    uint32_t code = static_cast<uint32_t>(Byte(nibbles + i)) >> shift & 15u;
    if (has_fifth) code |= (static_cast<uint32_t>(Byte(fifth + i)) >> j & 1u) << 4;
    out.codes[i] = static_cast<uint8_t>(code);
  }
}

// Q6_K: 128 bytes of low nibbles, 64 of upper bit pairs, 16 signed scales, d.
void ReadQ6K(const std::byte* super, int j, GgufBlock& out) {
  const int half = j / 4;
  const int quarter = j % 4;
  const std::byte* low = super + half * 64 + quarter % 2 * 32;
  const std::byte* high = super + 128 + half * 32;
  for (int i = 0; i < kActBlock; ++i) {
    const uint32_t nibble = static_cast<uint32_t>(Byte(low + i)) >> quarter / 2 * 4 & 15u;
    const uint32_t pair = static_cast<uint32_t>(Byte(high + i)) >> 2 * quarter & 3u;
    out.codes[i] = static_cast<uint8_t>(nibble | pair << 4);
  }
  out.d = super + 208;
  out.sub_scale[0] = Byte(super + 192 + 2 * j);
  out.sub_scale[1] = Byte(super + 192 + 2 * j + 1);
}

GgufBlock ReadGguf(WeightType type, const std::byte* row, int block) {
  const PackedLayout layout = LayoutOf(type);
  const int in_super = block % kSuperBlocks;
  const int gguf_block = IsSuper(type) ? block / kSuperBlocks : block;
  const std::byte* p =
      row + static_cast<size_t>(gguf_block) * static_cast<size_t>(layout.gguf_block_bytes);
  GgufBlock out;
  if (type == WeightType::kQ8_0) {
    ReadQ8_0(p, out);
  } else if (type == WeightType::kQ6K) {
    ReadQ6K(p, in_super, out);
  } else if (IsSuper(type)) {
    ReadQ4KOrQ5K(layout, p, in_super, out);
  } else {
    ReadQ4Or5(layout, p, out);
  }
  return out;
}

// ---- lines of codes -----------------------------------------------------------------------------

// `lines` is the block's first line, at this column's 4 bytes.
void StoreCodes(int bits, const uint8_t* codes, std::byte* lines) {
  const auto group = [&](int g) { return Load32(codes + 4 * g); };
  if (bits == 8) {
    for (int g = 0; g < 8; ++g) Store32(lines + g * kLineBytes, group(g));
    return;
  }
  for (int p = 0; p < 4; ++p) {
    Store32(lines + p * kLineBytes, (group(p) & kLowNibbles) | (group(p + 4) & kLowNibbles) << 4);
  }
  std::byte* upper = lines + 4 * kLineBytes;
  if (bits == 5) {
    uint32_t line = 0;
    for (int g = 0; g < 8; ++g) line |= (group(g) >> 4 & 0x01010101u) << g;
    Store32(upper, line);
  } else if (bits == 6) {
    for (int h = 0; h < 2; ++h) {
      uint32_t line = 0;
      for (int i = 0; i < 4; ++i) line |= (group(4 * h + i) >> 4 & 0x03030303u) << 2 * i;
      Store32(upper + h * kLineBytes, line);
    }
  }
}

void LoadCodes(int bits, const std::byte* lines, uint8_t* codes) {
  const auto line = [&](int i) { return Load32(lines + i * kLineBytes); };
  for (int g = 0; g < 8; ++g) {
    uint32_t word = bits == 8 ? line(g) : line(g % 4) >> g / 4 * 4 & kLowNibbles;
    if (bits == 5) word |= (line(4) >> g & 0x01010101u) << 4;
    if (bits == 6) word |= (line(4 + g / 4) >> g % 4 * 2 & 0x03030303u) << 4;
    Store32(codes + 4 * g, word);
  }
}

void PackQuantizedColumn(PackedMatrix& w, const std::byte* row, std::byte* panel, int column) {
  const PackedLayout layout = LayoutOf(w.type);
  const int f16_at = column * 2;
  for (int b = 0; b < w.k / kActBlock; ++b) {
    const GgufBlock block = ReadGguf(w.type, row, b);
    StoreCodes(layout.code_bits, block.codes,
               panel + CodeOffset(w.type, w.quant_offset, b) + column * 4);
    std::byte* scales = panel + (IsSuper(w.type) ? SuperOffset(w.type, b) : ScaleOffset(w.type, b));
    std::memcpy(scales + f16_at, block.d, 2);
    if (layout.has_min) std::memcpy(scales + kPlaneBytes + f16_at, block.m, 2);
    if (!IsSuper(w.type)) continue;
    const int j = b % kSuperBlocks;
    const int first = layout.has_halves ? 2 * j : j;
    const int second = layout.has_halves ? 2 * j + 1 : kSuperBlocks + j;
    scales[kSuperSubScales + first * kPanelColumns + column] = std::byte{block.sub_scale[0]};
    scales[kSuperSubScales + second * kPanelColumns + column] = std::byte{block.sub_scale[1]};
  }
}

float LoadFloat(WeightType type, const std::byte* p) {
  if (type == WeightType::kF32) {
    float value;
    std::memcpy(&value, p, sizeof value);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return type == WeightType::kF16 ? F16ToF32(bits) : Bf16ToF32(bits);
}

size_t PadToLine(size_t n_bytes) { return (n_bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }

}  // namespace

bool IsQuantized(WeightType type) { return LayoutOf(type).code_bits != 0; }

int BlockLength(WeightType type) { return LayoutOf(type).gguf_block_length; }

size_t GgufRowBytes(WeightType type, int k) {
  const PackedLayout layout = LayoutOf(type);
  return static_cast<size_t>(k / layout.gguf_block_length) *
         static_cast<size_t>(layout.gguf_block_bytes);
}

PackedMatrix ShapePackedMatrix(WeightType type, int n, int k) {
  const PackedLayout layout = LayoutOf(type);
  VC_CHECK(n > 0 && k > 0 && k % layout.gguf_block_length == 0, "n = {}, k = {}, block of {}", n, k,
           layout.gguf_block_length);
  const size_t n_blocks = static_cast<size_t>(k / kActBlock);
  PackedMatrix w;
  w.type = type;
  w.n = n;
  w.k = k;
  w.n_panels = (n + kPanelColumns - 1) / kPanelColumns;
  if (!IsQuantized(type)) {
    w.panel_bytes = PadToLine(static_cast<size_t>(k) * kPanelColumns *
                              static_cast<size_t>(layout.gguf_block_bytes));
  } else if (IsSuper(type)) {
    w.panel_bytes = n_blocks / kSuperBlocks * SuperBytes(type);
  } else {
    w.quant_offset = PadToLine(ScaleOffset(type, static_cast<int>(n_blocks)));
    w.panel_bytes = w.quant_offset + n_blocks * CodeBytes(type);
  }
  w.data = AlignedBuffer(w.panel_bytes * static_cast<size_t>(w.n_panels));
  return w;
}

void PackPanels(PackedMatrix& w, const std::byte* gguf_rows, int panel_begin, int panel_end) {
  const size_t row_bytes = GgufRowBytes(w.type, w.k);
  const size_t item = row_bytes / static_cast<size_t>(w.k);  // of a float type
  for (int n = panel_begin * kPanelColumns; n < panel_end * kPanelColumns && n < w.n; ++n) {
    const std::byte* row = gguf_rows + static_cast<size_t>(n) * row_bytes;
    std::byte* panel = w.data.data() + static_cast<size_t>(n / kPanelColumns) * w.panel_bytes;
    const int column = n % kPanelColumns;
    if (IsQuantized(w.type)) {
      PackQuantizedColumn(w, row, panel, column);
      continue;
    }
    std::byte* to = panel + static_cast<size_t>(column) * item;
    for (size_t k = 0; k < static_cast<size_t>(w.k); ++k) {
      std::memcpy(to + k * kPanelColumns * item, row + k * item, item);
    }
  }
}

WeightBlock UnpackBlock(const PackedMatrix& w, int column, int block) {
  const PackedLayout layout = LayoutOf(w.type);
  const std::byte* panel = w.Panel(column / kPanelColumns);
  const int c = column % kPanelColumns;
  WeightBlock out{};
  uint8_t codes[kActBlock];
  LoadCodes(layout.code_bits, panel + CodeOffset(w.type, w.quant_offset, block) + c * 4, codes);
  for (int i = 0; i < kActBlock; ++i)
    out.weights[i] = static_cast<int16_t>(codes[i] - layout.code_offset);

  const std::byte* scales =
      panel + (IsSuper(w.type) ? SuperOffset(w.type, block) : ScaleOffset(w.type, block));
  const float d = LoadF16(scales + c * 2);
  const float m = layout.has_min ? LoadF16(scales + kPlaneBytes + c * 2) : 0.0f;
  const int j = block % kSuperBlocks;
  const auto sub = [&](int i) { return Byte(scales + kSuperSubScales + i * kPanelColumns + c); };
  if (layout.has_halves) {
    for (int h = 0; h < 2; ++h)
      out.scale[h] = d * static_cast<float>(static_cast<int8_t>(sub(2 * j + h)));
  } else if (IsSuper(w.type)) {
    out.scale[0] = out.scale[1] = d * static_cast<float>(sub(j));
    out.min = -(m * static_cast<float>(sub(kSuperBlocks + j)));
  } else {
    out.scale[0] = out.scale[1] = d;
    out.min = m;
  }
  return out;
}

void DequantizeRow(const PackedMatrix& w, int row, float* out) {
  if (!IsQuantized(w.type)) {
    const size_t item = GgufRowBytes(w.type, 1);
    const std::byte* from =
        w.Panel(row / kPanelColumns) + static_cast<size_t>(row % kPanelColumns) * item;
    for (size_t k = 0; k < static_cast<size_t>(w.k); ++k)
      out[k] = LoadFloat(w.type, from + k * kPanelColumns * item);
    return;
  }
  const bool has_min = LayoutOf(w.type).has_min;
  for (int b = 0; b < w.k / kActBlock; ++b) {
    const WeightBlock block = UnpackBlock(w, row, b);
    for (int i = 0; i < kActBlock; ++i) {
      const float product = static_cast<float>(block.weights[i]) * block.scale[i / 16];
      out[b * kActBlock + i] = has_min ? product + block.min : product;
    }
  }
}

}  // namespace vericache::kernels
